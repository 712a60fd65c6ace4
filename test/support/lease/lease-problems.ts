/** The scheduler's invariants (I1 and so on) in one state of a small world. */
import { bulkLimit, compare, type ModelRequest } from './lease-model.ts'
import type { LeaseWorld } from './lease-world.ts'

/** Violated invariants in `world`, which was reached from `before` in one step. */
export function leaseProblems(world: LeaseWorld, before: LeaseWorld): string[] {
  return [
    ...world.devices().flatMap((device) => readerProblems(world, device)),
    ...[...world.model.requests.values()].flatMap((request) => grantProblems(request, world, before)),
    ...world.refusedForNothing().map((id) => `I7: ${id} was refused although nothing had failed`),
    ...idlers(world).map((id) => `I6: ${id} could start and waits`),
  ]
}

function readerProblems(world: LeaseWorld, device: string): string[] {
  const readers = world.readers(device)
  return readers > world.plan.rules.streams ? [`I7: ${readers} readers on ${device}`] : []
}

/**
 * A request granted in this step must have had a free stream (a reasserted lease may exceed the limit by one whose
 * stream has already ended), and must have left earlier waiters theirs.
 */
function grantProblems(request: ModelRequest, { model }: LeaseWorld, before: LeaseWorld): string[] {
  const { id, state } = request
  if (state !== 'g' || before.wasGranted(id)) return []
  const found: string[] = []
  if (before.model.recovering && model.recovering) found.push(`I9: ${id} granted while recovering`)
  for (const device of request.devices) {
    const { taken, limit, bulkTaken, bulkMost } = lineBefore(request, device, model)
    if (model.used(device) > limit) found.push(`I1: no stream of ${device} was free for ${id}`)
    if (request.class === 'bulk' && bulkTaken > bulkMost) found.push(`I2: all streams of ${device} are bulk`)
    if (taken > limit) found.push(`I5: ${id} took a reserved stream of ${device}`)
  }
  return found
}

/** Requests that wait although the rules let them start. */
function idlers({ model }: LeaseWorld): string[] {
  if (model.recovering) return []
  const waiting = [...model.requests.values()].filter(({ state }) => state === 'w')
  const mayStart = (request: ModelRequest) =>
    request.devices.every((device) => {
      const { taken, limit, bulkTaken, bulkMost } = lineBefore(request, device, model)
      return taken < limit && (request.class === 'interactive' || bulkTaken < bulkMost)
    })
  return waiting.filter(mayStart).map(({ id }) => id)
}

/** Streams of a device in use or reserved by earlier requests, and the limits; of all and of bulk ones. */
function lineBefore(request: ModelRequest, device: string, model: LeaseWorld['model']) {
  const limit = model.limit(device)
  const bulkMost = bulkLimit(limit)
  const earlier = model.waiters(device).filter((other) => compare(other, request) < 0)
  const bulk = earlier.filter((other) => other.class === 'bulk').length
  const bulkUsed = model.used(device, 'bulk')
  const reserved = earlier.length - bulk + Math.min(bulk, Math.max(0, bulkMost - bulkUsed))
  return { taken: model.used(device) + reserved, limit, bulkTaken: bulkUsed + bulk, bulkMost }
}
