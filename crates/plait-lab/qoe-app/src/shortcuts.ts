// Keys that work anywhere on the page, except where text is written.

import { byId, make } from "./dom";

export interface Shortcut {
  /** None where the browser obeys the key by itself. */
  key?: string;
  name: string;
  what: string;
  run?: () => void;
}

/** Whether keys of this element are text. */
function takesText(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !["checkbox", "radio"].includes(target.type);
  return target instanceof HTMLSelectElement || target.isContentEditable;
}

/** Whether the element does something of its own with the key. */
function obeys(target: EventTarget | null, key: string): boolean {
  const isActive =
    target instanceof HTMLButtonElement ||
    target instanceof HTMLInputElement ||
    (target instanceof HTMLElement && target.tagName === "SUMMARY");
  return key === " " && isActive;
}

export function installShortcuts(shortcuts: readonly Shortcut[]): void {
  const rows = shortcuts.flatMap(({ name, what }) => [
    make("dt", {}, make("kbd", {}, name)),
    make("dd", {}, what),
  ]);
  byId("keys").replaceChildren(...rows);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (takesText(event.target) || obeys(event.target, event.key)) return;
    // A dialog has its own keys.
    if (byId<HTMLDialogElement>("help").open) return;
    const found = shortcuts.find(({ key }) => key === event.key);
    if (!found?.run) return;
    event.preventDefault();
    found.run();
  });
}
