const [address, port, host, authority, limit, tls, path] = process.argv.slice(1);
const began = process.hrtime();
let ended = false;

function end(word, status) {
  if (ended) return;
  ended = true;
  const [seconds, nanoseconds] = process.hrtime(began);
  const waited = (seconds + nanoseconds / 1e9).toFixed(3);
  process.stdout.write(`uturn ${word} ${status || 0} ${waited}\n`, () => process.exit(0));
}

const words = {
  ECONNREFUSED: "refused", ECONNRESET: "reset", EPIPE: "reset", ETIMEDOUT: "hangs",
  EHOSTUNREACH: "unreachable", ENETUNREACH: "unreachable", EACCES: "unreachable",
  EPERM: "unreachable", ENOPROTOOPT: "unreachable", ENOTFOUND: "name-not-found",
  EAI_AGAIN: "name-not-found",
};
setTimeout(() => end("hangs"), Number(limit) * 1000);
let handshake = tls === "tls";
let received = "";
function connected() {
  handshake = false;
  if (!path) return end("connected");
  stream.write(`GET ${path} HTTP/1.1\r\nHost: ${authority}\r\nUser-Agent: uturn-probe\r\n` +
    "Accept: */*\r\nConnection: close\r\n\r\n");
}
const isName = require("net").isIP(host) === 0;
const stream = tls === "tls"
  ? require("tls").connect({ host: address, port: Number(port), rejectUnauthorized: false,
      servername: isName ? host : "" }, connected)
  : require("net").connect({ host: address, port: Number(port) }, connected);
stream.on("data", (bytes) => {
  received += bytes.toString("latin1");
  const line = received.indexOf("\n");
  if (line < 0 && received.length < 65536) return;
  const status = /^HTTP\/[0-9.]+ ([0-9]{3})/.exec(received);
  status ? end("status", status[1]) : end("other");
});
stream.on("end", () => end("reset"));
stream.on("close", () => end("reset"));
stream.on("error", (error) => {
  const many = error.errors && error.errors.length ? error.errors[error.errors.length - 1] : error;
  const word = words[many.code];
  if (word) return end(word);
  handshake ? end("tls-error") : end("failed", many.code || "error");
});
