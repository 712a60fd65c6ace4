/** State shared by all parts of the page: the session, how times are shown, events. */
import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { FleetEvents } from '../base/heard-events.ts'
import type { Zone } from '../base/instants.ts'
import type { Session } from '../base/session.ts'

export interface Surroundings {
  readonly session: Session
  readonly zone: Zone
  readonly theme: string
  readonly events: FleetEvents
}

export const SurroundingsContext = createContext<Surroundings | undefined>(undefined)

export function useSurroundings(): Surroundings {
  const surroundings = useContext(SurroundingsContext)
  if (surroundings === undefined) throw new Error('a part of the page stands outside of it')
  return surroundings
}
