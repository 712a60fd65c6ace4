/** Parses the server-sent events of a device (WHATWG HTML, 9.2) as bytes arrive. A device is not trusted. */
import { StringDecoder } from 'node:string_decoder'
import { MalformedAnswer } from '../../device/response-head.ts'

export interface EventBlock {
  /** Empty if the event has no name. */
  readonly id: string
  readonly name: string
  readonly data: string
}

/** Maximum length of one event. Those of the API have a few hundred bytes. */
const CHARS_MAX = 65_536

export class EventBlocks {
  readonly #decoder = new StringDecoder('utf8')
  /** An incomplete line. */
  #rest = ''
  #fields = new Map<string, string>()
  #chars = 0

  /** The events that end in `bytes`. Fails with MalformedAnswer if one exceeds the maximum length. */
  push(bytes: Buffer): readonly EventBlock[] {
    const lines = (this.#rest + this.#decoder.write(bytes)).split('\n')
    this.#rest = lines.pop() ?? ''
    const blocks = lines.flatMap((line) => this.#take(line.replace(/\r$/, '')) ?? [])
    this.#refuseLong(this.#chars + this.#rest.length)
    return blocks
  }

  #take(line: string): EventBlock | undefined {
    if (line === '') return this.#end()
    const [, name = '', value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? []
    // A comment line has no name.
    if (name === '') return undefined
    this.#chars += line.length
    this.#refuseLong(this.#chars)
    const before = name === 'data' ? this.#fields.get(name) : undefined
    this.#fields.set(name, before === undefined ? value : `${before}\n${value}`)
    return undefined
  }

  /** An event without data is ignored. */
  #end(): EventBlock | undefined {
    const [id = '', name = '', data] = ['id', 'event', 'data'].map((field) => this.#fields.get(field))
    this.#fields = new Map()
    this.#chars = 0
    return data === undefined ? undefined : { id, name, data }
  }

  #refuseLong(chars: number): void {
    if (chars > CHARS_MAX) throw new MalformedAnswer(`sent an event of more than ${CHARS_MAX} characters`)
  }
}
