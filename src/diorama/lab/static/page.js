// @ts-check
/** The page that `diorama lab` serves: the socket, and the lab in it. */
import { socketModel } from "./wire.js";
import { render } from "./lab.js";

const token = new URLSearchParams(location.search).get("token") || "";
render({ model: socketModel(token), el: /** @type {HTMLElement} */ (document.getElementById("lab")), token });
