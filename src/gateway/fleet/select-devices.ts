import { LRUCache } from 'lru-cache'
import type { CapfleetError } from '../../shared/base/error.ts'
import { badParameter } from '../../shared/query/query-parameters.ts'
import { unknownDevice } from './unknown-device.ts'

interface Selectable {
  readonly name: string
  readonly site: string | undefined
}

/**
 * The devices that `selection` matches, in the order of the fleet, each once. It is a comma-separated list of names,
 * globs ("nyc*", "lon?") and sites ("site=eu"); undefined selects all. `param` is named in errors. Fails with
 * unknown-device if an entry matches nothing, and with bad-parameter if the list is empty (an unset variable of a
 * script must not mean all devices) or longer than anyone needs: each word is compared with each device.
 */
export function selectDevices<Entry extends Selectable>(
  fleet: readonly Entry[],
  selection: string | undefined,
  param = 'Device',
): readonly Entry[] {
  if (selection === undefined) return fleet
  refuseLong(selection, param)
  const wanted = wordsOf(selection)
  if (wanted.length === 0)
    throw badParameter(param, `is empty; list devices, use ${param}=* for all of them, or leave it out`)
  const named = new Map(fleet.map((device) => [device.name, device]))
  const chosen = new Set<Entry>()
  for (const word of wanted) {
    // A name contains none of the characters of globs and sites, so such a word needs no scan of all devices.
    const exact = named.get(word)
    const matching = exact === undefined ? fleet.filter(matcherOf(word)) : [exact]
    if (matching.length === 0) throw nothingMatches(fleet, word, param)
    for (const device of matching) chosen.add(device)
  }
  return fleet.filter((device) => chosen.has(device))
}

/**
 * Whether one of the words of `selection` matches the device. The selections of bounds are evaluated for every device
 * with every request, so the result is cached while the device is the same object.
 */
export function isSelected(device: Selectable, selection: string): boolean {
  const known = SELECTIONS.get(selection) ?? newSelection(selection)
  const chosen = known.chosen.get(device) ?? known.matchers.some((matches) => matches(device))
  known.chosen.set(device, chosen)
  return chosen
}

interface Selection {
  readonly matchers: readonly ((device: Selectable) => boolean)[]
  readonly chosen: WeakMap<Selectable, boolean>
}

/** Enough for all bounds in use at the same time; others are parsed again. */
const SELECTIONS = new LRUCache<string, Selection>({ max: 1_000 })

function newSelection(selection: string): Selection {
  const made: Selection = { matchers: wordsOf(selection).map(matcherOf), chosen: new WeakMap() }
  SELECTIONS.set(selection, made)
  return made
}

export function wordsOf(selection: string): readonly string[] {
  return selection
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')
}

const WORDS_MAX = 64
const BYTES_MAX = 4_096

function refuseLong(selection: string, param: string): void {
  const bytes = Buffer.byteLength(selection)
  if (bytes > BYTES_MAX)
    throw badParameter(param, `has ${bytes} bytes, but at most ${BYTES_MAX} are allowed; use globs`)
  const words = selection.split(',', WORDS_MAX + 1).length
  if (words > WORDS_MAX) throw badParameter(param, `has more than ${WORDS_MAX} words; use globs`)
}

function matcherOf(word: string): (device: Selectable) => boolean {
  const site = /^site=(.*)$/.exec(word)?.[1]
  if (site !== undefined) return (device) => device.site !== undefined && matchesGlob(site, device.site)
  return (device) => matchesGlob(word, device.name)
}

/** `*` matches any text, `?` one character. Two pointers instead of a regular expression: linear for any input. */
function matchesGlob(glob: string, text: string): boolean {
  let g = 0
  let t = 0
  let star = -1
  let afterStar = 0
  while (t < text.length) {
    if (glob[g] === '*') {
      star = g++
      afterStar = t
    } else if (g < glob.length && (glob[g] === '?' || glob[g] === text[t])) {
      g++
      t++
    } else if (star >= 0) {
      g = star + 1
      t = ++afterStar
    } else return false
  }
  while (glob[g] === '*') g++
  return g === glob.length
}

function nothingMatches(fleet: readonly Selectable[], word: string, param: string): CapfleetError {
  const site = /^site=(.*)$/.exec(word)?.[1]
  if (site === undefined)
    return unknownDevice(
      word,
      fleet.map((device) => device.name),
      param,
    )
  const sites = new Set(fleet.flatMap((device) => device.site ?? []))
  return unknownDevice(
    word,
    [...sites].map((name) => `site=${name}`),
    param,
  )
}
