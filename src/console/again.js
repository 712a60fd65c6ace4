/**
 * Reloads the page if one of its files is missing. They are named by the hash of their contents: while gateways are
 * being replaced, the page may come from one gateway and name a file that the next one does not have. This file has
 * the same name in all of them.
 */
const KEY = 'capfleet-missing'
const TRIES_MAX = 60
const AGAIN_MS = 1_000

let isMissing = false
addEventListener(
  'error',
  ({ target }) => {
    if (target !== window) isMissing = true
  },
  true,
)
addEventListener('load', () => {
  const tries = isMissing ? Number(sessionStorage.getItem(KEY) ?? 0) + 1 : 0
  sessionStorage.setItem(KEY, String(tries))
  if (isMissing && tries <= TRIES_MAX) setTimeout(() => location.reload(), AGAIN_MS)
})
