
# Whether this is the command that the line has so far.
function __program_at
    set -l command PROGRAM
    set -l is_value false
    for token in (commandline -opc)
        if $is_value
            set is_value false
        else if contains -- $token VALUED
            set is_value true
        else if contains -- "$command $token" COMMANDS
            set command "$command $token"
        end
    end
    test "$command" = "$argv"
end

