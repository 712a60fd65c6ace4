/** The part of a list that an appliance answers with, like a device that supports the list parameters. */

type Capture = Readonly<Record<string, unknown>>

export const LIST_PARAMETERS_HEADER = {
  'Capfleet-List-Parameters': 'StreamName, Limit, After, From, To, Format',
}

/** `captures` must come newest first; no more of them are read than needed, unless a name is given. */
export function listedPart(captures: Iterable<Capture>, query: URLSearchParams): readonly Capture[] {
  const limit = Number(query.get('Limit') ?? Infinity)
  const name = query.get('StreamName')
  if (name === null) return firstOf(captures, limit, (capture) => isInRange(capture, query))
  const inRange = [...captures].filter((capture) => isInRange(capture, query))
  const full = inRange.filter(({ StreamName }) => StreamName === name)
  const started = inRange.filter(({ StreamName }) => String(StreamName).replace(/_\d{8}_\d{4}$/, '') === name)
  return (full.length > 0 ? full : started).slice(0, limit)
}

/** The order of an appliance's list. */
export function inListOrder(captures: readonly Capture[]): readonly Capture[] {
  return captures.toSorted((a, b) => {
    if (startOf(a) !== startOf(b)) return startOf(a) < startOf(b) ? 1 : -1
    return String(a.StreamName) < String(b.StreamName) ? -1 : 1
  })
}

function firstOf(
  captures: Iterable<Capture>,
  limit: number,
  isChosen: (capture: Capture) => boolean,
): readonly Capture[] {
  const chosen: Capture[] = []
  for (const capture of captures) {
    if (chosen.length === limit) break
    if (isChosen(capture)) chosen.push(capture)
  }
  return chosen
}

function isInRange(capture: Capture, query: URLSearchParams): boolean {
  const [from, to] = [query.get('From'), query.get('To')]
  const endNs = BigInt(String(capture.EndTS ?? capture.StartTS ?? 0))
  return (from === null || endNs > BigInt(from)) && (to === null || startOf(capture) < BigInt(to))
}

function startOf({ StartTS }: Capture): bigint {
  return BigInt(String(StartTS ?? 0))
}
