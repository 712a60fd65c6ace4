/**
 * Loads the page again when one of its files is missing. They are named by what is in them: while gateways are replaced,
 * the one that has sent the page may name a file that the one that is asked for it does not have. This file is in each
 * of them by the same name.
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
