// @ts-check
/** Adds a link to the lab to every case of a report that the lab serves. */
for (const shown of document.querySelectorAll("article.case")) {
  const title = shown.querySelector("h4"), name = title?.querySelector("a")?.textContent || "";
  if (!title || !name) continue;
  const link = document.createElement("a");
  link.href = `/${location.search}#case=${encodeURIComponent(name)}&tab=case`;
  link.className = "lab";
  link.textContent = "open in the lab";
  title.append(" · ", link);
}
