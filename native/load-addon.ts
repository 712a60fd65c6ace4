/**
 * Loads the output of native/binding. Only the files in this folder do so; they check every argument, the binary
 * trusts them.
 */
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { CapfleetError, type ErrorCode } from '../src/shared/base/error.ts'

/** capfleet: stored and live packets, for the appliance; capfleet-gateway: merge, compression and counting. */
export type AddonName = 'capfleet' | 'capfleet-gateway'

interface Addon {
  initialize(makeError: (code: ErrorCode | 'cancelled', message: string) => Error): void
}

/** The exports of the addon; the caller declares those that it uses. */
export function loadAddon<Exports>(name: AddonName): Exports {
  const path = fileURLToPath(new URL(`build/${name}.node`, import.meta.url))
  try {
    const loaded: Addon & Exports = createRequire(import.meta.url)(path)
    loaded.initialize(makeError)
    return loaded
  } catch (cause) {
    throw new Error(`the engine ${path} cannot be loaded; build it with: node .ci/setup.mjs`, { cause })
  }
}

function makeError(code: ErrorCode | 'cancelled', message: string): Error {
  if (code === 'cancelled') return new DOMException(message, 'AbortError')
  return new CapfleetError(code, message)
}
