/** The bytes of a packet, in which those of the chosen field are marked. A click chooses the field of a byte. */
import { useEffect, useRef } from 'preact/hooks'
import { TEXTS } from '../texts.ts'

const LINE_BYTES = 16
/** Of a byte in hexadecimal, with the space after it. */
const BYTE_CHARACTERS = 3
/** A wider space is before the second half of a line. */
const HALF = LINE_BYTES / 2

interface ByteLinesProps {
  readonly bytes: Uint8Array
  /** The marked bytes: from `start`, before `end`. */
  readonly start: number
  readonly end: number
  readonly onByte: (at: number) => void
}

export function ByteLines({ bytes, start, end, onByte }: ByteLinesProps) {
  const frame = useRef<HTMLElement>(null)
  useEffect(() => {
    frame.current?.querySelector('mark')?.scrollIntoView({ block: 'nearest' })
  }, [start, end])
  const lines = Array.from({ length: Math.ceil(bytes.length / LINE_BYTES) }, (_, line) => line * LINE_BYTES)
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the fields are chosen by keys in the tree
    <section
      ref={frame}
      class="byte-lines"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
      tabIndex={0}
      aria-label={TEXTS.inside.bytes}
      onClick={(event) => {
        const at = byteAt(event)
        if (at !== undefined && at < bytes.length) onByte(at)
      }}
    >
      <pre>
        {lines.map((from) => {
          const line = [...bytes.subarray(from, from + LINE_BYTES)]
          const marked = { start: Math.max(0, start - from), end: Math.min(line.length, end - from) }
          const hex = line.map((byte, index) => `${gap(index)}${byte.toString(16).padStart(2, '0')}`)
          return (
            <span key={from} class="byte-line">
              <span class="quiet">{from.toString(16).padStart(4, '0')} </span>
              <span data-hex={from}>
                <Marked pieces={hex} {...marked} />
              </span>
              <span>{' '.repeat(missingCharacters(line.length))} </span>
              <span data-text={from}>
                <Marked pieces={line.map(printed)} {...marked} />
              </span>
              {'\n'}
            </span>
          )
        })}
      </pre>
    </section>
  )
}

interface MarkedProps {
  readonly pieces: readonly string[]
  readonly start: number
  readonly end: number
}

function Marked({ pieces, start, end }: MarkedProps) {
  const part = (from: number, to: number): string => pieces.slice(from, to).join('')
  if (end <= start) return <>{part(0, pieces.length)}</>
  const marked = part(start, end)
  // The space before the first marked byte is not marked.
  const inside = marked.trimStart()
  return (
    <>
      {part(0, start)}
      {pieces[start]?.length === 1 ? '' : marked.slice(0, marked.length - inside.length)}
      <mark>{pieces[start]?.length === 1 ? marked : inside}</mark>
      {part(end, pieces.length)}
    </>
  )
}

function gap(index: number): string {
  return index === HALF ? '  ' : ' '
}

function missingCharacters(count: number): number {
  return (LINE_BYTES - count) * BYTE_CHARACTERS + (count <= HALF ? 1 : 0)
}

function printed(byte: number): string {
  return byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.'
}

/** The byte under the pointer. */
function byteAt({ target, clientX }: MouseEvent): number | undefined {
  const part = (target as HTMLElement).closest<HTMLElement>('[data-hex], [data-text]')
  if (part === null) return undefined
  const { left, width } = part.getBoundingClientRect()
  const length = part.textContent?.length ?? 0
  const character = Math.floor(((clientX - left) / width) * length)
  const { hex, text } = part.dataset
  if (text !== undefined) return Number(text) + character
  const isSecondHalf = character > HALF * BYTE_CHARACTERS
  return (
    Number(hex) + Math.min(LINE_BYTES - 1, Math.floor((character - (isSecondHalf ? 1 : 0)) / BYTE_CHARACTERS))
  )
}
