import { leaseProblems } from './lease-problems.ts'
import { LeaseWorld, type WorldPlan } from './lease-world.ts'

export interface Exploration {
  readonly states: number
  /** The first state with a problem: what is wrong, and the steps to it. */
  readonly problem: string | undefined
}

/** One in this many states is tested for whether all are served if no more faults occur. */
const STATES_A_DRAIN = 50
const DRAIN_STEPS_MOST = 200

interface Node {
  readonly world: LeaseWorld
  readonly path: { readonly name: string; readonly before: Node['path'] } | undefined
}

/** Explores all states of the world until something is wrong. */
export function explore(plan: WorldPlan): Exploration {
  const seen = new Set<number>()
  const open: Node[] = [{ world: new LeaseWorld(plan), path: undefined }]
  seen.add(hash(open[0]?.world.key() ?? ''))
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const { world, path } = node
    const steps = world.steps()
    const wrong = steps.length === 0 ? world.endProblems() : []
    if (seen.size % STATES_A_DRAIN === 0) wrong.push(...drainProblems(world))
    for (const [name, act] of steps) {
      const next = world.clone()
      act(next)
      wrong.push(...leaseProblems(next, world).map((problem) => `${problem} after ${name}`))
      const key = hash(next.key())
      if (seen.has(key)) continue
      seen.add(key)
      open.push({ world: next, path: { name, before: path } })
    }
    if (wrong[0] !== undefined) return { states: seen.size, problem: `${wrong[0]}: ${story(path)}` }
  }
  return { states: seen.size, problem: undefined }
}

/** From here on without faults, broken streams or clients that give up: all must be served. */
function drainProblems(start: LeaseWorld): string[] {
  const world = start.clone()
  for (let count = 0; count < DRAIN_STEPS_MOST; count += 1) {
    const steps = world.peacefulSteps().filter(([name]) => !/^(cancel|break)/.test(name))
    // Steps lower in this list only happen if none of the higher ones is possible, so no step is delayed for ever.
    const step =
      steps.find(([name]) => !/^(ask|sample|clear|release|end)/.test(name)) ??
      steps.find(([name]) => /^(sample|clear)/.test(name)) ??
      (count % 2 === 0 ? steps.find(([name]) => name.startsWith('ask')) : undefined) ??
      steps[0]
    if (step === undefined) return world.endProblems().map((problem) => `I6, I10: ${problem}`)
    step[1](world)
  }
  return ['I6: it never comes to an end']
}

function story(path: Node['path']): string {
  const names: string[] = []
  for (let at = path; at !== undefined; at = at.before) names.unshift(at.name)
  return names.join(', ')
}

/** 53 bits: the chance that any two of ten million states collide is 1 in 180. */
function hash(text: string): number {
  let high = 0x811c9dc5
  let low = 0x2545f491
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i)
    high = Math.imul(high ^ code, 0x01000193)
    low = Math.imul(low ^ code, 0x5bd1e995) ^ (low >>> 13)
  }
  return (high >>> 0) * 2 ** 21 + ((low >>> 0) & 0x1fffff)
}
