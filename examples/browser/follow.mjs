// Follows a log of a partita server from a web page, with a token: an EventSource cannot send one. This file needs no
// other. Copy it.
//
//   import { follow } from "./follow.mjs";
//   for await (const { position, event } of follow("https://shop.example:7420/v1/log", { token, after: position })) …
//
// The server lets the page ask if it runs with --allow-origin and the page's origin. Events are those of docs/http.md:
// offsets and numbers are strings. Save the position with what you make of the event, and begin behind it the next time.

// Problem is what the server has refused. Its kind is like "malformed"; document is all that it has said.
export class Problem extends Error {
  constructor(status, document, wait = 0) {
    super(`${document.title ?? "no answer of partita"}: ${document.detail ?? status}`);
    Object.assign(this, { status, document, wait, kind: (document.type ?? "").split("#")[1] ?? "" });
  }
}

// follow yields { position, event } for ever, over as many connections as that takes, each event once. It ends when you
// break off, or when signal does (an AbortSignal). It throws a Problem that does not pass. What may pass it tells to
// onFailure, and tries again. A connection of which nothing comes for silence milliseconds is given up: the server sends
// a comment every 15 s.
export async function* follow(url, { token, after, signal, silence = 45_000, onFailure = () => {} } = {}) {
  const { protocol, hostname } = new URL(url);
  if (token && protocol !== "https:" && !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)) {
    throw new Error(`got ${url} and a token, which anybody could read on its way: want https, or this machine`);
  }
  for (let failures = 0; !signal?.aborted; ) {
    let wait = 0;
    try {
      for await (const message of messages(url, token, after, silence, signal)) {
        const document = JSON.parse(message.data);
        if (message.event === "problem") throw new Problem(document.status, document);
        failures = 0;
        after = message.id;
        yield { position: after, event: document };
      }
    } catch (error) {
      if (signal?.aborted) return;
      if (error instanceof Problem && ![408, 429, 502, 503, 504].includes(error.status)) throw error;
      wait = error.wait ?? 0;
      onFailure(error);
    }
    failures++;
    const delay = Math.min(5_000, 50 * 2 ** Math.min(failures, 10)) * (0.5 + Math.random() / 2);
    await new Promise((wake) => setTimeout(wake, 1_000 * wait + delay));
  }
}

// messages yields the server-sent events of one connection. What has no empty line behind it has not wholly come: it will
// come again.
async function* messages(url, token, after, silence, signal) {
  const given = new AbortController();
  const giveUp = () => given.abort(new Error("nothing has come from the server for too long"));
  const stop = () => given.abort(signal.reason);
  signal?.addEventListener("abort", stop);
  let watch = setTimeout(giveUp, silence);
  try {
    const asked = new URL(url);
    if (after) asked.searchParams.set("after", after);
    const headers = { Accept: "text/event-stream", ...(token && { Authorization: `Bearer ${token}` }) };
    const answer = await fetch(asked, { headers, signal: given.signal, cache: "no-store" });
    if (!answer.ok) {
      const document = await answer.json().catch(() => ({}));
      throw new Problem(answer.status, document, Number(answer.headers.get("Retry-After")) || 0);
    }
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "", message = {};
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(watch);
      watch = setTimeout(giveUp, silence);
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (line === "" && "data" in message) yield message;
        if (line === "") message = {};
        const colon = line.indexOf(":");
        if (colon > 0) message[line.slice(0, colon)] = line.slice(colon + 1).trimStart();
      }
    }
  } finally {
    clearTimeout(watch);
    signal?.removeEventListener("abort", stop);
    given.abort();
  }
}
