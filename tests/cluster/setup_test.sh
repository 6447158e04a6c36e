#!/bin/bash
# setup_test.sh BUILD: a cluster of three machines with TLS, made by `spoor setup` alone. Each machine is a network and
# a mount namespace of its own. Exits with 77 where these are not allowed.
set -euo pipefail

skip() {
  printf '%s: Skipped\n%s\n' "$0" "$*"  # as GoogleTest says it
  exit 77
}
fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

((EUID == 0)) || skip 'needs root'
unshare --net --mount true || skip 'namespaces of its own are not allowed'
spoor_program=$(realpath "$1/spoor")
spoord_program=$(realpath "$1/spoord")
work=$(mktemp -d)
declare -A machines daemons
finish() {
  for pid in "${daemons[@]}" ${inviter:+"$inviter"} "${machines[@]}"; do kill "$pid" || true; done
  wait
  rm -rf "$work"
}
trap finish EXIT

# A process holds the namespaces, which go with it.
make_machine() {
  local open  # for as long as this script runs
  mkfifo "$work/ready"
  # shellcheck disable=SC2034
  exec {open}> >(exec unshare --net --mount --propagation private \
    bash -c "mount -t tmpfs none /run; echo >'$work/ready'; exec cat >/dev/null")
  machines[$1]=$!
  read -r _ <"$work/ready"
  rm "$work/ready"
}
on() { nsenter --target "${machines[$1]}" --net --mount "${@:2}"; }
spoor() { on "$1" "$spoor_program" --config "$work/$1/spoor.json" "${@:2}"; }

make_machine switch
on switch ip link add bridge type bridge
on switch ip link set bridge up
for number in 1 2 3; do
  node=node$number
  make_machine "$node"
  on switch ip link add "$node" type veth peer name eth0 netns "${machines[$node]}"
  on switch ip link set "$node" master bridge up
  on "$node" ip link set lo up
  on "$node" ip address add "10.77.0.$number/24" dev eth0
  on "$node" ip link set eth0 up
  on "$node" mkdir /run/spoor
  mkdir -p "$work/$node/drive/photos" "$work/$node/data"
  echo "of $node" >"$work/$node/drive/photos/$node.jpg"
done
start() {
  nsenter --target "${machines[$1]}" --net --mount "$spoord_program" --config "$work/$1/spoor.json" 2>"$work/$1/log" &
  daemons[$1]=$!
  until spoor "$1" status >"$work/status" 2>&1; do
    kill -0 "${daemons[$1]}" || fail "$(cat "$work/$1/log")"
    sleep 0.1
  done
}
reload() {
  local before
  before=$(grep -c 'reloaded:' "$work/$1/log") || true
  kill -HUP "${daemons[$1]}"
  until (($(grep -c 'reloaded:' "$work/$1/log") > before)); do sleep 0.1; done
}
set_up() { spoor "$1" setup --name "${name:-$1}" --drive "$work/$1/drive" --no-watch --no-start --set "node.data_dir=$work/$1/data" "${@:2}"; }
# Sets `join` to the arguments with which a node joins.
invite() {
  exec {invitation}< <(exec nsenter --target "${machines[node1]}" --net --mount "$spoor_program" --config "$work/node1/spoor.json" setup --invite 2>&1)
  inviter=$!
  read -r _ <&"$invitation"
  read -ra join <&"$invitation"
  read -r _ <&"$invitation"
  read -r token <&"$invitation"
  join=(--join "${join[3]}" --token "$token")
}

end_invitation() {
  wait "$inviter"
  inviter=
}

# The first node, which expects the second and not the third.
set_up node1 --address 10.77.0.1 --peer 10.77.0.2 | tee "$work/out"
grep -q 'spoor setup --invite' "$work/out"
! set_up node1 --tls --address 10.77.0.1 2>"$work/err" || fail 'a node was set up twice'
grep -q 'this node has been set up' "$work/err"
[[ $(stat -c %a "$work/node1/ca.key" "$work/node1/node.pem" "$work/node1/spoor.json") == $'600\n640\n644' ]]
sed -i 's/"port": 7420/"port": 7430/' "$work/node1/spoor.json"  # the nodes that join learn of it
start node1

# With another token nothing is sent, and the invitation stays open.
invite
wrong=AAAA${token:4}
! set_up node2 "${join[@]:0:2}" --token "$wrong" 2>"$work/err" || fail 'a node has joined with the secret of another token'
grep -q 'refuses: it has another token' "$work/err"
! set_up node2 "${join[@]:0:2}" --token "${token:0:60}AAAA" 2>"$work/err" || fail 'a node has joined another node'
grep -q 'is not the node that made this token' "$work/err"
[[ ! -e $work/node2/spoor.json ]]
! name=NODE1 set_up node2 "${join[@]}" 2>"$work/err" || fail 'a node has the name of another one'
grep -q "'NODE1' is the name of this node" "$work/err"
! name=node1.b set_up node2 "${join[@]}" 2>"$work/err" || fail 'the first label of a name is that of another node'
! set_up node2 "${join[@]}" --address 10.77.0.9 2>"$work/err" || fail 'a node has an address that is not its own'
set_up node2 "${join[@]:0:2}" <<<"$token"
end_invitation
cat <&"$invitation"
! set_up node3 "${join[@]}" 2>"$work/err" || fail 'a token was used twice'
[[ ! -e $work/node3/spoor.json ]]
jq -e '.peers.static | contains(["https://10.77.0.1:7430"])' "$work/node2/spoor.json" >"$work/out" || fail "$(cat "$work/node2/spoor.json")"
invite
set_up node3 "${join[@]}"
end_invitation
cat <&"$invitation" >"$work/out"
cat "$work/out"
grep -q 'on each other node: spoor setup --add-peer https://10.77.0.3:7420' "$work/out"
reload node1
start node2
start node3

# Until the second node has it as a peer, doctor says so there.
until { spoor node2 doctor || true; } >"$work/out" && grep -q 'node3, a peer of node1' "$work/out"; do sleep 0.1; done
grep -q -- 'setup --add-peer https://10.77.0.3:7420' "$work/out"
spoor node2 setup --add-peer 10.77.0.3
reload node2

# What one node knows, all do.
for node in node1 node2 node3; do spoor "$node" scan >"$work/scan" || fail "$(cat "$work/scan")"; done
spoor node3 mark photos/node3.jpg
for node in node1 node2 node3; do
  until spoor "$node" cluster --json >"$work/cluster" && [[ $(jq '.nodes | length' "$work/cluster") == 3 ]]; do sleep 0.1; done
  spoor "$node" usage --cluster --json photos | jq -e '.files == 3 and .complete' >"$work/out" || fail "$(spoor "$node" usage --cluster photos)"
  spoor "$node" status --json | jq -e '[.peers[].url | startswith("https:")] == [true, true]' >"$work/out"
done

# Certificates are renewed while the daemons run; the key of the authority is on the first node alone.
for node in node1 node2; do
  cp "$work/$node/node.pem" "$work/old.pem"
  if [[ $node == node1 ]]; then
    spoor node1 setup --renew
  else
    invite
    spoor node2 setup --renew "${join[@]}"
    end_invitation
  fi
  ! cmp -s "$work/$node/node.pem" "$work/old.pem" || fail "$node has its old certificate"
  openssl verify -CAfile "$work/node1/ca.pem" -verify_ip "10.77.0.${node#node}" -verify_hostname "$node.spoor.internal" "$work/$node/node.pem"
  reload "$node"
done
spoor node3 scan

# A node that is known may renew its certificate, and no other machine may have its name.
invite
! name=node2 set_up node3 "${join[@]}" --force 2>"$work/err" || fail 'a node has the name of another one'
grep -q "'node2' is the name of the node at https://10.77.0.2:7420" "$work/err"
kill "$inviter"
wait "$inviter" || true
inviter=

# A second set-up keeps the authority, and what was there.
cp "$work/node1/ca.key" "$work/ca.key"
set_up node1 --address 10.77.0.1 --peer 10.77.0.2 --peer 10.77.0.3 --force
sed -i 's/"port": 7420/"port": 7430/' "$work/node1/spoor.json"
cmp "$work/node1/ca.key" "$work/ca.key"
[[ -e $work/node1/spoor.json.old ]]
reload node1
spoor node1 scan

# A token for the page.
page=$(spoor node1 setup --add-token page:read | tail -n 1)
! spoor node1 setup --add-token page:owner 2>"$work/err" || fail 'a token has a role that does not exist'
reload node1
on node1 curl -fsS --cacert "$work/node1/ca.pem" -H "Authorization: Bearer $page" https://10.77.0.1:7430/v1/scans >"$work/out"
jq -e '.scans | length > 0' "$work/out" >"$work/err"

# A configuration with comments is left as it is.
sed -i '1i // ours' "$work/node3/spoor.json"
! spoor node3 setup --add-peer 10.77.0.4 2>"$work/err" || fail 'comments were lost'
grep -q 'add "https://10.77.0.4:7420" to peers.static' "$work/err"
