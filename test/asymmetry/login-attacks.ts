/** Attacks with wrong passwords: each costs us a hash that is slow on purpose. */
import { type AttackScene, type Attacks, askOverAndOver, BOTH, get } from './attack.ts'
import { basic, HONEST_NAME } from './stand.ts'

export const loginAttacks: Attacks = {
  'wrong-logins': { targets: BOTH, run: (scene) => guess(scene, (n) => `guess-${n}`) },
  // Whoever is guessed at must not be locked out by it.
  'wrong-logins-of-another-user': { targets: BOTH, run: (scene) => guess(scene, () => HONEST_NAME) },
}

function guess(scene: AttackScene, nameOf: (n: number) => string): Promise<void> {
  const { stand, scale } = scene
  return askOverAndOver(scene, scale === 'full' ? 300 : 100, (n) =>
    get('/stream/list', [`Authorization: ${basic(nameOf(n), `wrong ${n} of ${stand.attackedPid}`)}`]),
  )
}
