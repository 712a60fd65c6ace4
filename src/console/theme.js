/**
 * Says which theme somebody has chosen in this browser (base/preferences.ts) before anything is drawn: the page's own
 * script comes later, and its first picture would be of the other theme. What the browser is set to, the style sheet knows.
 */
try {
  const theme = localStorage.getItem('capfleet-theme')
  if (theme !== null) document.documentElement.dataset.theme = theme
} catch {
  // A browser that forbids to keep anything has nothing kept.
}
