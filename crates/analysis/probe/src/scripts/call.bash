# Connects, and sends a request if there is a path. Prints one line: an error, "connected", or the
# first line of the answer.
address=$1 port=$2 authority=$3 path=$4
exec 2>&1
exec 3<>"/dev/tcp/$address/$port" || exit
if [ -z "$path" ]; then
  echo connected
  exit
fi
printf 'GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: uturn-probe\r\nAccept: */*\r\nConnection: close\r\n\r\n' "$path" "$authority" >&3
if IFS= read -r line <&3 && [ -n "$line" ]; then
  printf '%s\n' "$line"
else
  echo closed
fi
