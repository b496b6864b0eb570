// How the page reaches its session: HTTP here; widget.js has the same over the messages of a notebook.

const TYPES = { "<f8": Float64Array, "<f4": Float32Array, "<i4": Int32Array, "|u1": Uint8Array };

export function unbundle(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  for (const { name, dtype, shape, offset } of header.arrays ?? []) {
    const size = shape.reduce((a, b) => a * b, 1);
    const [key, part] = name.includes(".") ? name.split(".") : [name, null]; // "list.score" belongs to header.list
    const target = part === null ? header : header[key];
    target[part ?? key] = new TYPES[dtype](buffer, 4 + length + offset, size);
    target[`${part ?? key}Shape`] = shape;
  }
  return header;
}

export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export async function opened(kind, status, content) {
  const isJson = kind.startsWith("application/json");
  if (status >= 400) {
    let text = `request failed (${status})`;
    if (isJson) text = JSON.parse(new TextDecoder().decode(content)).error ?? text;
    throw new ApiError(text, status);
  }
  return isJson ? JSON.parse(new TextDecoder().decode(content)) : unbundle(content);
}

export class HttpApi {
  constructor(token) {
    this.token = token;
  }

  async get(path, params = {}) {
    return this.#send(`api/${path}?${new URLSearchParams(params)}`, {});
  }

  async post(path, body, params = {}) {
    const plain = typeof body === "string" || body instanceof Blob;
    return this.#send(`api/${path}?${new URLSearchParams(params)}`, { method: "POST", body: plain ? body : JSON.stringify(body) });
  }

  async file(what) {
    const answer = await fetch(`api/export?${new URLSearchParams({ what })}`, { headers: { "X-Token": this.token } });
    if (!answer.ok) throw new ApiError((await answer.json()).error, answer.status);
    const name = /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition") ?? "")?.[1] ?? what;
    return { name, blob: await answer.blob() };
  }

  // Calls back with every event, and with {type: "lost"} and {type: "hello"} as the connection goes and comes.
  events(listener) {
    let closed = false;
    const read = async () => {
      const answer = await fetch("api/events", { headers: { "X-Token": this.token } });
      if (answer.status === 401) {
        listener({ type: "refused" });
        closed = true;
        return;
      }
      if (!answer.ok) throw new Error(String(answer.status));
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        text += value;
        const parts = text.split("\n\n");
        text = parts.pop();
        for (const part of parts) if (part.startsWith("data: ")) listener(JSON.parse(part.slice(6)));
      }
    };
    const loop = async () => {
      let pause = 250;
      while (!closed) {
        try {
          await read();
          pause = 250;
        } catch {
          // the server is away: tried again below
        }
        if (closed) return;
        listener({ type: "lost" });
        await new Promise((done) => setTimeout(done, pause));
        pause = Math.min(2000, pause * 1.6);
      }
    };
    loop();
    return () => {
      closed = true;
    };
  }

  async #send(address, options) {
    const answer = await fetch(address, { ...options, headers: { "X-Token": this.token } });
    return opened(answer.headers.get("Content-Type") ?? "", answer.status, await answer.arrayBuffer());
  }
}
