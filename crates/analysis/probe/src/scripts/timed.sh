# Runs a command for about so many seconds at most, and prints when it began and ended, and its
# status. Each process that it starts is waited for: in a container, nothing else may do that.
limit=$1
shift
LC_ALL=C
export LC_ALL
read -r began rest </proc/uptime
"$@" &
command=$!
(
  end=$((${began%.*} + limit + 1))
  while kill -0 "$command"; do
    read -r now rest </proc/uptime
    [ "${now%.*}" -lt "$end" ] || kill "$command"
    sleep 0.1 || sleep 1
  done
) </dev/null >/dev/null 2>&1 &
guard=$!
wait "$command"
status=$?
read -r ended rest </proc/uptime
wait "$guard"
echo "uturn $began $ended $status"
