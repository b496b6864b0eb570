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

const PATIENCE = 60000; // milliseconds until a kernel that does not answer counts as gone

class MessageApi {
  constructor(model, opened) {
    this.model = model;
    this.opened = opened;
    this.waiting = new Map();
    this.listeners = new Set();
    this.count = 0;
    this.name = Math.random().toString(36).slice(2); // answers go to every view of a model: each knows its own
    this.hear = (message, buffers) => this.#hear(message, buffers);
    model.on("msg:custom", this.hear);
  }

  close() {
    this.model.off("msg:custom", this.hear);
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
    const id = `${this.name}.${++this.count}`;
    return new Promise((done, fail) => {
      const late = setTimeout(() => {
        this.waiting.delete(id);
        fail(new Error("the kernel does not answer"));
      }, PATIENCE);
      this.waiting.set(id, (answer) => {
        clearTimeout(late);
        done(answer);
      });
      this.model.send({ id, ...message }, undefined, buffers);
    });
  }

  #hear(message, buffers) {
    if (message.event) {
      for (const listener of this.listeners) listener(message.event);
      return;
    }
    if (!this.waiting.has(message.id)) return;
    const view = buffers[0];
    const content = view.buffer ? view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength) : view;
    this.waiting.get(message.id)({ ...message, content });
    this.waiting.delete(message.id);
  }
}

async function render({ model, el }) {
  const address = link(model.get("modules"));
  const [{ mount }, { opened }] = await Promise.all([import(address("app.js")), import(address("api.js"))]);
  const root = document.createElement("div");
  root.classList.add("wb-in-notebook");
  el.append(root);
  const api = new MessageApi(model, opened);
  const stop = await mount(root, api);
  return () => {
    stop();
    api.close();
    root.remove();
  };
}

export default { render };
