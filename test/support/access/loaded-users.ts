import { LoginGate, type LoginSettings } from '../../../src/shared/auth/login-gate.ts'
import { UsersFile } from '../../../src/shared/auth/users-file.ts'
import { Metrics } from '../../../src/shared/base/metrics.ts'

/** Loads the users of a file, with limits that only a test of limits comes near. */
export function loadUsers(
  path: string,
  settings: LoginSettings = { waitingMax: 1_000, wrongMax: 1_000, pauseMaxS: 60 },
): Promise<UsersFile> {
  return UsersFile.load(path, new LoginGate(settings, new Metrics()), { bounds: true })
}
