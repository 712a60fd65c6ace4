/** Attacks that occupy places and keep them: streams, places in the queue, places of event listeners. */
import {
  type AttackScene,
  type Attacks,
  askOverAndOver,
  BOTH,
  get,
  getAsUser,
  holdConnections,
} from './attack.ts'
import type { Target } from './stand.ts'

/** A device serves four streams regardless of the user; only the gateway has users who wait for each other. */
const WHERE_PLACES_ARE_SHARED: readonly Target[] = ['gateway']

export const hoardingAttacks: Attacks = {
  'event-followers': {
    targets: BOTH,
    run: (scene) => holdConnections(scene, 100, () => getAsUser(scene.stand, liveAnswer(scene, 'events'))),
  },
  'event-followers-without-a-name': {
    targets: ['appliance'],
    run: (scene) => holdConnections(scene, 100, () => get(liveAnswer(scene, 'events'))),
  },
  'telemetry-followers': {
    targets: BOTH,
    run: (scene) => holdConnections(scene, 100, () => getAsUser(scene.stand, liveAnswer(scene, 'telemetry'))),
  },
  'followed-downloads': {
    targets: WHERE_PLACES_ARE_SHARED,
    run: (scene) =>
      holdConnections(scene, 8, () =>
        getAsUser(
          scene.stand,
          `${scene.stand.devicePath}/api/v1/pcap/single?StreamName=running&Follow=1&Wait=50`,
        ),
      ),
  },
  'downloads-that-nobody-reads': {
    targets: WHERE_PLACES_ARE_SHARED,
    stated: {
      kind: 'filtered',
      // The buffers of the connection take more than 1 MiB in the first period.
      waitMs: 20_000,
      reason: 'a client that reads nothing keeps its streams for one or two periods of downloads.parkAfterMs',
    },
    run: async (scene) => {
      const { stand } = scene
      const request = getAsUser(
        stand,
        `${stand.devicePath}/api/v1/pcap/timerange?${stand.wholeRange}&Wait=50`,
      )
      const lane = async (): Promise<void> => {
        const connection = await scene.wire.connect()
        connection?.send(request)
        connection?.stopReading()
        await connection?.closed
      }
      await Promise.all(Array.from({ length: 8 }, lane))
    },
  },
  'hundreds-of-waiting-downloads': {
    targets: WHERE_PLACES_ARE_SHARED,
    run: (scene) =>
      askOverAndOver(scene, scene.scale === 'full' ? 400 : 100, () =>
        getAsUser(
          scene.stand,
          `${scene.stand.devicePath}/api/v1/pcap/timerange?${scene.stand.wholeRange}&Wait=50`,
        ),
      ),
  },
}

function liveAnswer({ stand }: AttackScene, kind: 'events' | 'telemetry'): string {
  const query = kind === 'events' ? 'Telemetry=1' : 'Interval=1'
  return `${stand.devicePath}/api/v1/system/${kind}?${query}`
}
