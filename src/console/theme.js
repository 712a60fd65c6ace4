/**
 * Applies the theme chosen in this browser (base/preferences.ts) before anything is drawn: the page's own script runs
 * later, and the first frame would have the other theme. The style sheet handles the browser's own setting.
 */
try {
  const theme = localStorage.getItem('capfleet-theme')
  if (theme !== null) document.documentElement.dataset.theme = theme
} catch {
  // If the browser does not allow storage, nothing is stored.
}
