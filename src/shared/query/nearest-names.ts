/**
 * Up to `limit` of `candidates` that are most similar to `wanted`, best first and each once, for "did you mean". Ignores
 * case. A candidate that contains the wanted text counts as near.
 */
export function nearestNames(wanted: string, candidates: Iterable<string>, limit = 3): string[] {
  const text = wanted.toLowerCase().slice(0, LONGEST_NAME)
  // Every short name is near a single letter, and near an empty text.
  const farthest = text.length < 2 ? 0 : Math.max(2, Math.floor(text.length / 3))
  const scored: { name: string; distance: number }[] = []
  for (const name of new Set(candidates)) {
    const other = name.toLowerCase()
    const distance = isPartOf(text, other) ? 1 : editDistance(text, other, farthest)
    if (distance <= farthest) scored.push({ name, distance })
  }
  scored.sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1))
  return scored.slice(0, limit).map((entry) => entry.name)
}

/** Only the beginning of longer texts is compared, so that a hostile one costs no time. */
const LONGEST_NAME = 128
/** A shorter text is part of too many names to identify one of them. */
const SHORTEST_PART = 3

function isPartOf(text: string, name: string): boolean {
  return text.length >= SHORTEST_PART && name.includes(text)
}

/** Levenshtein distance, or farthest + 1 as soon as it is known to exceed `farthest`. */
function editDistance(a: string, b: string, farthest: number): number {
  if (Math.abs(a.length - b.length) > farthest) return farthest + 1
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    let smallest = row
    for (let column = 1; column <= b.length; column++) {
      const replaced = (previous[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1)
      const cost = Math.min(replaced, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1)
      current.push(cost)
      smallest = Math.min(smallest, cost)
    }
    if (smallest > farthest) return farthest + 1
    previous = current
  }
  return previous[b.length] ?? 0
}
