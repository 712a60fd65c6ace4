/** THE TABLE of all attacks, and the honest uses whose cost gives the prices, which are measured in the same way. */
import { type Attacks, askOverAndOver, BOTH, getAsUser } from './attack.ts'
import { connectionAttacks } from './connection-attacks.ts'
import { deviceAttacks } from './device-attacks.ts'
import { hoardingAttacks } from './hoarding-attacks.ts'
import { importAttacks } from './import-attacks.ts'
import { queryAttacks } from './query-attacks.ts'
import { controlPath } from './stand.ts'

export const ATTACKS: Attacks = {
  ...connectionAttacks,
  ...queryAttacks,
  ...hoardingAttacks,
  ...deviceAttacks,
  ...importAttacks,
}

/** At full speed, over one connection. */
export const HONEST_USES: Attacks = {
  'control-calls': {
    targets: BOTH,
    run: (scene) => askOverAndOver(scene, 1, () => getAsUser(scene.stand, controlPath(scene.stand))),
  },
  'plain-download': {
    targets: BOTH,
    run: (scene) => {
      const { devicePath, wholeRange } = scene.stand
      return askOverAndOver(scene, 1, () =>
        getAsUser(scene.stand, `${devicePath}/api/v1/pcap/timerange?${wholeRange}`),
      )
    },
  },
}
