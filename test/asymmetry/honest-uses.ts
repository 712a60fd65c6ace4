/** Honest use, at full speed, by which prices are made: as attacks are, so that they are counted alike. */
import { type Attacks, askOverAndOver, BOTH, getAsUser } from './attack.ts'
import { controlPath } from './stand.ts'

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
