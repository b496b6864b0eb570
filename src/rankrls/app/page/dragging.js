// A document dragged to another place by pointer: a preference between it and the one it is put above or below.

const FAR = 6; // pixels before a press becomes a drag
const EDGE = 36; // pixels from the end of the list where it scrolls
const SPEED = 0.7; // pixels a millisecond

export class Dragging {
  constructor(list) {
    this.list = list;
    this.held = null; // { element, row, from, to, start }
    list.box.addEventListener("pointerdown", (event) => this.press(event));
  }

  get element() {
    return this.held?.element;
  }

  press(event) {
    const { list } = this;
    const element = event.target.closest(".wb-doc");
    if (!element || event.button > 0 || event.target.closest("button, .wb-grades")) return;
    const row = Number(element.dataset.row);
    const start = { x: event.clientX, y: event.clientY, scroll: list.box.scrollTop };
    const far = (now) => Math.hypot(now.clientX - start.x, now.clientY - start.y) > FAR;
    const canDrag = !list.app.state.read_only && (event.pointerType !== "touch" || event.target.closest(".wb-grip"));
    const move = (now) => {
      if (now.pointerId !== event.pointerId) return;
      if (!this.held && canDrag && far(now)) this.lift(element, row, start);
      if (!this.held) return;
      now.preventDefault();
      this.y = now.clientY;
      this.follow();
    };
    const end = (now) => {
      if (now.pointerId !== event.pointerId) return;
      release();
      if (this.held) this.drop(now.type === "pointerup");
      else if (now.type === "pointerup" && !far(now)) {
        list.focusOn(row);
        element.focus({ preventScroll: true });
        list.choose(row);
      }
    };
    const escape = (key) => {
      if (key.key !== "Escape" || !this.held) return;
      key.stopPropagation();
      release();
      this.drop(false);
    };
    const release = () => {
      document.removeEventListener("pointermove", move);
      document.removeEventListener("pointerup", end);
      document.removeEventListener("pointercancel", end);
      document.removeEventListener("keydown", escape, true);
    };
    document.addEventListener("pointermove", move, { passive: false });
    document.addEventListener("pointerup", end);
    document.addEventListener("pointercancel", end);
    document.addEventListener("keydown", escape, true);
  }

  lift(element, row, start) {
    const { list } = this;
    if (list.app.view.shuffled) {
      if (!this.told) list.app.toast("A shuffled list has no order to change: end the shuffle to drag.");
      this.told = true;
      return;
    }
    const from = list.placeOf(row);
    const box = list.box.getBoundingClientRect();
    this.held = { element, row, to: from, start, top: box.top, bottom: box.bottom };
    element.classList.add("wb-dragging");
    list.box.classList.add("wb-drag-on");
    this.scroll();
  }

  // Near its ends the list scrolls for as long as the document is held there.
  scroll(before = performance.now()) {
    if (!this.held) return;
    const now = performance.now();
    const { top, bottom } = this.held;
    const side = this.y < top + EDGE ? -1 : this.y > bottom - EDGE ? 1 : 0;
    if (side) {
      const most = Math.max(0, this.list.length - (bottom - top)); // the document held out of the list is no part of it
      this.list.scroll(Math.max(0, Math.min(most, this.list.top + side * SPEED * (now - before))));
      this.list.place();
    }
    requestAnimationFrame(() => this.scroll(now));
  }

  // The document under the pointer, the others making room.
  follow() {
    const { list } = this;
    const { element, row: held, start } = this.held;
    const from = list.placeOf(held); // it moves where another page changes the model meanwhile
    const height = list.rowHeight;
    const shift = this.y - start.y + list.top - start.scroll;
    const to = Math.max(0, Math.min(list.order.length - 1, Math.round(from + shift / height)));
    this.held.to = to;
    const last = (list.order.length - 1) * height;
    element.style.transform = `translateY(${Math.max(-height / 3, Math.min(last + height / 3, from * height + shift))}px)`;
    for (const [row, other] of list.rows) {
      if (other === element) continue;
      const place = list.placeOf(row);
      const moved = place > from && place <= to ? -1 : place < from && place >= to ? 1 : 0;
      other.style.transform = `translateY(${(place + moved) * height}px)`;
    }
  }

  cancel() {
    this.element?.classList.remove("wb-dragging");
    this.list.box.classList.remove("wb-drag-on");
    this.held = null;
  }

  // A document put higher is preferred to the one it was put above; put lower, the one above it is preferred.
  async drop(done) {
    const { list } = this;
    const { row, to } = this.held;
    const from = list.placeOf(row);
    this.cancel();
    if (!done || to === from || from < 0) return list.place(true);
    const other = list.at(to);
    const changed = await (to < from ? list.app.prefer(row, other) : list.app.prefer(other, row));
    if (changed) list.focusOn(row);
    else list.place(true);
  }
}
