// The workbench in a notebook (anywidget). The page's own modules come with the widget and are linked here.

const IMPORT = /(from\s*|import\s*)"(\.[^"]+)"/g;

function link(sources) {
  const made = new Map();
  const resolve = (from, target) => new URL(target, `http://page/${from}`).pathname.slice(1);
  const address = (name) => {
    if (!made.has(name)) {
      const text = sources[name].replace(IMPORT, (_, word, target) => `${word}"${address(resolve(name, target))}"`);
      made.set(name, URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
    }
    return made.get(name);
  };
  return address;
}

class MessageApi {
  constructor(model, opened) {
    this.model = model;
    this.opened = opened;
    this.waiting = new Map();
    this.listeners = new Set();
    this.count = 0;
    model.on("msg:custom", (message, buffers) => this.#hear(message, buffers));
  }

  get(path, params = {}) {
    return this.#ask({ method: "GET", path, params }).then((got) => this.opened(got.kind, got.status, got.content));
  }

  post(path, body, params = {}) {
    const text = typeof body === "string" ? { buffers: [new TextEncoder().encode(body).buffer] } : { body };
    return this.#ask({ method: "POST", path, params, ...text }).then((got) => this.opened(got.kind, got.status, got.content));
  }

  async file(what) {
    const got = await this.#ask({ method: "GET", path: "export", params: { what } });
    if (got.status >= 400) await this.opened(got.kind, got.status, got.content);
    return { name: got.name, blob: new Blob([got.content], { type: got.kind }) };
  }

  events(listener) {
    this.listeners.add(listener);
    listener({ type: "hello", version: 0 });
    return () => this.listeners.delete(listener);
  }

  #ask({ buffers, ...message }) {
    const id = ++this.count;
    return new Promise((done) => {
      this.waiting.set(id, done);
      this.model.send({ id, ...message }, undefined, buffers);
    });
  }

  #hear(message, buffers) {
    if (message.event) {
      for (const listener of this.listeners) listener(message.event);
      return;
    }
    const view = buffers[0];
    const content = view.buffer ? view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength) : view;
    this.waiting.get(message.id)?.({ ...message, content });
    this.waiting.delete(message.id);
  }
}

async function render({ model, el }) {
  const address = link(model.get("modules"));
  const [{ mount }, { opened }] = await Promise.all([import(address("app.js")), import(address("api.js"))]);
  const root = document.createElement("div");
  root.classList.add("wb-in-notebook");
  el.append(root);
  return mount(root, new MessageApi(model, opened));
}

export default { render };
