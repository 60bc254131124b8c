import errno, signal, socket, ssl, sys, time

address, port, host, authority, limit, tls, path, follows = sys.argv[1:9]
began = time.monotonic()


def end(word, status=0):
    sys.stdout.write("uturn %s %s %.3f\n" % (word, status, time.monotonic() - began))
    sys.stdout.flush()
    sys.exit()


def expire(number, frame):
    raise TimeoutError()


def ask(address, port, host, authority, tls, path):
    """Returns the status and the Location of an answer."""
    stream = socket.create_connection((address, port))
    if not path:
        end("connected")
    if tls:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        stream = context.wrap_socket(stream, server_hostname=host)
    request = (
        "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: uturn-probe\r\nAccept: */*\r\n"
        "Connection: close\r\n\r\n" % (path, authority)
    )
    stream.sendall(request.encode("ascii"))
    head = stream.makefile("rb")
    words = head.readline(65536).decode("latin-1").split()
    if not words:
        end("reset")
    if not words[0].startswith("HTTP/") or len(words) < 2 or not words[1].isdigit():
        end("other")
    location = None
    for line in iter(lambda: head.readline(65536).decode("latin-1"), ""):
        name, colon, value = line.partition(":")
        if not line.strip():
            break
        if name.lower() == "location":
            location = value.strip()
    return int(words[1]), location


def call():
    status, location = ask(address, int(port), host, authority, tls == "tls", path)
    if follows == "follow" and status in (301, 302, 303, 307, 308) and location:
        from urllib.parse import urljoin, urlsplit

        scheme = "https" if tls == "tls" else "http"
        there = urlsplit(urljoin("%s://%s%s" % (scheme, authority, path), location))
        if there.scheme in ("http", "https") and there.hostname:
            is_tls = there.scheme == "https"
            # The same host is at the same address.
            place = address if there.hostname == host else there.hostname
            next_path = (there.path or "/") + ("?" + there.query if there.query else "")
            usual = 443 if is_tls else 80
            status, location = ask(
                place, there.port or usual, there.hostname, there.netloc, is_tls, next_path
            )
    end("status", status)


signal.signal(signal.SIGALRM, expire)
signal.setitimer(signal.ITIMER_REAL, float(limit))
try:
    call()
except socket.gaierror:
    end("name-not-found")
except ConnectionRefusedError:
    end("refused")
except (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError):
    end("reset")
except ssl.SSLError:
    end("tls-error")
except TimeoutError:
    end("hangs")
except OSError as error:
    unreachable = ("EHOSTUNREACH", "ENETUNREACH", "EACCES", "EPERM", "ENOPROTOOPT")
    word = errno.errorcode.get(error.errno, "")
    end("unreachable" if word in unreachable else "failed", word or "error")
