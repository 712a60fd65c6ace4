/** Why a command cannot be carried out in the state that the capture is in. */
import { CapfleetError } from '../../src/base/error.ts'
import type { ScheduledRun } from './schedule-clock.ts'

export function captureRunning(name: string): CapfleetError {
  return new CapfleetError('capture-running', `${name} is running; stop it first`, {
    members: { StreamName: name },
  })
}

export function captureNotRunning(): CapfleetError {
  return new CapfleetError('capture-not-running', 'no capture is running; there is nothing to stop')
}

export function captureScheduled(name: string, row: string, run: ScheduledRun | undefined): CapfleetError {
  const until = run === undefined ? 'its end' : run.until
  return new CapfleetError(
    'capture-scheduled',
    `${name} runs by the schedule row ${row} until ${until}; add Until=next to stop today's run`,
    { members: { StreamName: name, ScheduleName: row } },
  )
}
