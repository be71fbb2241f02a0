// @ts-check
/** In a report that the lab serves every picture of the gallery opens its case. */
for (const figure of document.querySelectorAll("figure.strip[data-case]")) {
  const name = figure.getAttribute("data-case") || "";
  const link = document.createElement("a");
  link.href = `/${location.search}#case=${encodeURIComponent(name)}&tab=case`;
  link.textContent = "open in the lab";
  figure.querySelector("figcaption")?.append(" · ", link);
  const picture = figure.querySelector("img");
  if (!picture) continue;
  const around = /** @type {HTMLAnchorElement} */ (link.cloneNode(false));
  picture.replaceWith(around);
  around.append(picture);
}
