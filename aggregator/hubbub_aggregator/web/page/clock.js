// The server's time: a laptop whose clock is off must not say that a survey has begun when it has not.

let ahead = 0; // milliseconds that the server's clock is ahead of this machine's

export function now() {
  return (Date.now() + ahead) / 1000;
}

// Asks the server once what time it is; without an answer this machine's clock serves.
export async function setByServer() {
  try {
    const sent = Date.now();
    const response = await fetch("page/icon.svg", { method: "HEAD", cache: "no-store" });
    const date = Date.parse(response.headers.get("date"));
    // The header has whole seconds; differences within them and the journey are no difference.
    if (Number.isFinite(date) && Math.abs(date + 500 - sent) > 2000) ahead = date + 500 - sent;
  } catch {
    // The connection's own state says that the server is away.
  }
}
