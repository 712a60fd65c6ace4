/** THE TABLE of all attacks. */
import type { Attacks } from './attack.ts'
import { connectionAttacks } from './connection-attacks.ts'
import { deviceAttacks } from './device-attacks.ts'
import { hoardingAttacks } from './hoarding-attacks.ts'
import { importAttacks } from './import-attacks.ts'
import { loginAttacks } from './login-attacks.ts'
import { queryAttacks } from './query-attacks.ts'

export const ATTACKS: Attacks = {
  ...connectionAttacks,
  ...loginAttacks,
  ...queryAttacks,
  ...hoardingAttacks,
  ...deviceAttacks,
  ...importAttacks,
}
