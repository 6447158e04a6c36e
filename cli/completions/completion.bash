_program() {
  # TABLES
  local cur prev words cword split command=PROGRAM word kind is_value=
  _init_completion -s -n : || return
  for word in "${words[@]:1:cword-1}"; do
    if [[ $is_value ]]; then
      is_value=
    elif [[ ${values["$command $word"]+known} ]]; then
      is_value=1
    elif [[ " ${commands[$command]} " == *" $word "* ]]; then
      command+=" $word"
    fi
  done
  if [[ $is_value || $split == true ]]; then
    kind=${values["$command $prev"]-}
  elif [[ $cur == -* ]]; then
    kind=${options[$command]}
  else
    kind=${commands[$command]:-${arguments[$command]}}
  fi
  case $kind in
    @file) _filedir ;;
    @dir) _filedir -d ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$kind" -- "$cur") ;;
  esac
}
complete -F _program PROGRAM
