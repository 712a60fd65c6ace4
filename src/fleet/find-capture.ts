import { CapfleetError } from '../base/error.ts'
import { nearestNames } from '../query/nearest-names.ts'
import type { CaptureList, UnreachableDevice } from './capture-lists.ts'

/** What follows a base name in a full name: date, time, and a number when there are several. */
const START_SUFFIX = /^_\d{8}_\d{4}(_\d+)*$/

/**
 * The one device that holds the capture `name`: a full name, or a base name that stands for the
 * device's newest. Fails with ambiguous-capture, unknown-capture, or the error of a device that
 * could not be asked when no other one has it.
 */
export function findCapture(
  name: string,
  {
    lists,
    unreachable,
  }: { readonly lists: readonly CaptureList[]; readonly unreachable: readonly UnreachableDevice[] },
): string {
  const exact = holdersOf(lists, (captureName) => captureName === name)
  const holders = exact.length > 0 ? exact : holdersOf(lists, (captureName) => isStartOf(name, captureName))
  const [only, ...others] = holders
  if (only !== undefined && others.length === 0) return only
  if (only !== undefined) {
    throw new CapfleetError(
      'ambiguous-capture',
      `the capture ${name} is on several devices (${holders.join(', ')}); choose one by Device=`,
      { param: 'StreamName', members: { candidates: holders } },
    )
  }
  const [missing] = unreachable
  if (missing !== undefined) throw missing.error
  throw unknownCapture(name, lists)
}

function holdersOf(lists: readonly CaptureList[], matches: (name: string) => boolean): string[] {
  return lists.filter((list) => list.captures.some(({ name }) => matches(name))).map((list) => list.device)
}

function isStartOf(base: string, captureName: string): boolean {
  return captureName.startsWith(base) && START_SUFFIX.test(captureName.slice(base.length))
}

/** How many names are compared with one that is unknown: each takes microseconds, and devices hold any number. */
const COMPARED_MAX = 10_000

function unknownCapture(name: string, lists: readonly CaptureList[]): CapfleetError {
  const newest = lists.flatMap(({ captures }) => captures.slice(0, COMPARED_MAX))
  const near = nearestNames(
    name,
    newest.slice(0, COMPARED_MAX).map((capture) => capture.name),
  )
  const hint = near.length === 0 ? '/stream/list shows all' : `did you mean ${near.join(', ')}?`
  return new CapfleetError('unknown-capture', `no device has a capture ${name}; ${hint}`, {
    param: 'StreamName',
    members: { candidates: near },
  })
}
