// Texts come from agents and files. Characters that are not seen but change how the others are read are shown by their numbers, in
// every text of the page.
import { options, type ComponentChildren, type VNode } from "preact";

/// Controls, and marks that reorder or hide text: with them, a command can look like another one.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0]|\udb40[\udc00-\udfff]/g;

export function visible(text: string): string {
  return text.replace(UNSEEN, (unseen) => `\\u${unseen.codePointAt(0)!.toString(16).padStart(4, "0")}`);
}

function shown(children: ComponentChildren): ComponentChildren {
  if (typeof children === "string") return visible(children);
  return Array.isArray(children) ? children.map(shown) : children;
}

/// Has all elements, fragments and components show their texts so.
export function showUnseen(): void {
  const before = options.vnode;
  options.vnode = (vnode: VNode) => {
    // A text has none: it is a child of what was made before.
    const props = vnode.props as { children?: ComponentChildren } | undefined;
    if (props && typeof props === "object" && props.children !== undefined) props.children = shown(props.children);
    before?.(vnode);
  };
}
