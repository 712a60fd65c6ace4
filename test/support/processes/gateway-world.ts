import { after, before, beforeEach } from 'node:test'
import type { GatewayConfig } from '../../../src/gateway/gateway-config.ts'
import type { FakeDevice } from '../devices/fake-device.ts'
import { startFakeFleet } from '../devices/fake-fleet.ts'
import { startTempGateway, type TempGateway } from './temp-gateway.ts'
import { TempRedis } from './temp-redis.ts'

/** Three simulated devices, a gateway over them, and a private Redis. */
export class GatewayWorld {
  /** d0, d1, d2; empty until the tests begin. */
  readonly fleet: FakeDevice[] = []
  readonly #parts = new AsyncDisposableStack()
  #redis: TempRedis | undefined
  #gateway: TempGateway | undefined

  get redis(): TempRedis {
    if (this.#redis === undefined) throw new Error('the tests have not begun')
    return this.#redis
  }

  get gateway(): TempGateway {
    if (this.#gateway === undefined) throw new Error('the tests have not begun')
    return this.#gateway
  }

  async open(packets: number, settings: Partial<Record<keyof GatewayConfig, unknown>>): Promise<void> {
    this.#redis = this.#parts.use(await TempRedis.create())
    for (const device of await startFakeFleet(packets)) this.fleet.push(this.#parts.use(device))
    this.#gateway = this.#parts.use(await startTempGateway(this.fleet, this.#redis.url, settings))
  }

  /** Resets all devices: no special behaviour, no captures, no recorded requests. */
  reset(): void {
    for (const device of this.fleet) {
      device.behaviour = {}
      device.captures = []
      device.outsiders = 0
      device.answers.clear()
      device.requests.length = 0
    }
  }

  close(): Promise<void> {
    return this.#parts.disposeAsync()
  }
}

/**
 * A world for the tests of the describe() that calls this; each test starts with reset devices. Each device serves
 * `packets` packets; `settings` replaces parts of the gateway's configuration.
 */
export function gatewayWorld(
  packets: number,
  settings: Partial<Record<keyof GatewayConfig, unknown>> = {},
): GatewayWorld {
  const world = new GatewayWorld()
  before(() => world.open(packets, settings))
  after(() => world.close())
  beforeEach(() => world.reset())
  return world
}
