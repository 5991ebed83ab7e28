// Faults of a page, each in words. Boxes that scroll by themselves are fine.
const width = window.innerWidth, faults = [];
const scrolls = e => ['auto', 'scroll', 'hidden'].includes(getComputedStyle(e).overflowX);
const boxed = e => {
    for (let p = e.parentElement; p && p.tagName !== 'ARTICLE'; p = p.parentElement)
        if (scrolls(p)) return p;
    return null;
};
for (let e = document.querySelector('article'); e; e = e.parentElement)
    if (e.scrollWidth > Math.min(e.clientWidth, width) + 1) {
        faults.push(`page is ${e.scrollWidth} wide`);
        break;
    }
const size = of => parseFloat(getComputedStyle(of).fontSize);
const title = document.querySelector('article h1');
for (const e of document.querySelectorAll('article h2'))
    if (title && !title.nextElementSibling?.matches('dl.py') && size(e) > size(title))
        faults.push(`larger than the title: ${e.textContent.slice(0, 40)}`);
for (const e of document.querySelectorAll('article :is(h1, table, pre, img, dt, dd, p, li)')) {
    const box = e.getBoundingClientRect(), name = e.tagName.toLowerCase();
    const text = e.textContent.trim().slice(0, 40);
    if (!box.width) continue;
    if (box.right > width + 1 && !boxed(e) && !scrolls(e))
        faults.push(`${name} ends at ${Math.round(box.right)}: ${text}`);
    if (name === 'h1' && e.scrollWidth > e.clientWidth + 1) faults.push(`title is cut: ${text}`);
    const box_of = boxed(e);
    const cells = name === 'table' && e.rows.length ? e.rows[0].cells : [];
    if (cells.length > 1 && !e.matches('.indextable')
        && cells[0].getBoundingClientRect().width > 0.7 * width)
        faults.push(`only names are seen of the table ${text}`);
    if (name === 'table' && box_of && box_of.clientWidth < 0.6 * Math.min(width, 720))
        faults.push(`table in a box of ${box_of.clientWidth}`);
    if (name === 'table' && width > 1000 && box_of && box.width > box_of.clientWidth + 1
        && !location.pathname.includes('benchmarks') && !e.matches('.indextable'))
        faults.push(`columns are out of sight in the table ${text}`);
}
return faults;
