/** Shared setup of the page's tests, without the dissector: one fleet, one browser, and a page used by a user with the role "full". */
import type { Page } from 'playwright-core'
import { ExportWorld } from '../exports/export-world.ts'
import { startTempWorker } from '../processes/temp-worker.ts'
import { ConsoleBrowser, type OpenPage } from './console-browser.ts'

const CAPTURE_BYTES = 1_000_000
/** An export without its device ends while the test watches. */
const DEVICE_RETRY_S = 1

export class ConsoleStand implements AsyncDisposable {
  readonly world: ExportWorld
  readonly browser: ConsoleBrowser
  readonly opened: OpenPage
  readonly #owned: AsyncDisposableStack

  private constructor(
    parts: Pick<ConsoleStand, 'world' | 'browser' | 'opened'>,
    owned: AsyncDisposableStack,
  ) {
    this.world = parts.world
    this.browser = parts.browser
    this.opened = parts.opened
    this.#owned = owned
  }

  static async create(): Promise<ConsoleStand> {
    await using building = new AsyncDisposableStack()
    const world = building.use(
      await ExportWorld.create({
        captureBytes: CAPTURE_BYTES,
        exports: { deviceRetryS: DEVICE_RETRY_S },
        settings: { console: { dissector: false } },
      }),
    )
    building.use(await startTempWorker(world.gateway))
    const browser = building.use(await ConsoleBrowser.launch())
    const options = { colorScheme: 'dark', viewport: { width: 1_440, height: 900 } } as const
    const opened = building.use(await browser.open(`${world.gateway.url}/`, options))
    return new ConsoleStand({ world, browser, opened }, building.move())
  }

  get page(): Page {
    return this.opened.page
  }

  get url(): string {
    return `${this.world.gateway.url}/`
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#owned.disposeAsync()
  }
}
