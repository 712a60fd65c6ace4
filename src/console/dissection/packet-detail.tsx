/** One packet: its fields and its bytes side by side, and what can be done with them. */
import { useEffect, useState } from 'preact/hooks'
import type { FollowableStream, PacketDetails, PacketRow, TreeField } from '../../dissector/messages.ts'
import { countText } from '../../shared/base/amounts.ts'
import { instantText } from '../base/instants.ts'
import type { Packet } from '../inside/pcap-packets.ts'
import { PivotLinks } from '../inside/pivot-links.tsx'
import { useSurroundings } from '../parts/context.ts'
import { CopyButton, Value } from '../parts/copied.tsx'
import { TEXTS } from '../texts.ts'
import { ByteLines } from './byte-lines.tsx'
import type { Dissector } from './dissector.ts'
import { FieldTree } from './field-tree.tsx'
import { fieldAt } from './shown-fields.ts'
import { StreamDialog } from './stream-dialog.tsx'

interface PacketDetailProps {
  readonly dissector: Dissector
  /** From 1. */
  readonly number: number
  readonly packet: Packet | undefined
  readonly row: PacketRow | undefined
  readonly onFilter: (filter: string) => void
  /** Chooses another packet, by its number. */
  readonly onPacket: (number: number) => void
}

/** The packet's details stay until those of the next one are there, so that the view does not flicker. */
export function PacketDetail({ dissector, number, packet, row, onFilter, onPacket }: PacketDetailProps) {
  const { dissection: texts } = TEXTS
  const { zone } = useSurroundings()
  const [details, setDetails] = useState<PacketDetails | undefined>()
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set())
  const [chosen, setChosen] = useState<TreeField | undefined>()
  const [source, setSource] = useState(0)
  const [stream, setStream] = useState<FollowableStream | undefined>()
  useEffect(() => {
    let isCurrent = true
    dissector.ask('packet', { number }).then(
      (next) => {
        if (!isCurrent) return
        setDetails(next)
        setChosen(undefined)
        setSource(0)
      },
      // A failure is shown in place of the whole view.
      () => undefined,
    )
    return () => {
      isCurrent = false
    }
  }, [dissector, number])
  if (details === undefined || packet === undefined) return null
  const { fields, sources, streams } = details
  const choose = (field: TreeField): void => {
    setChosen(field)
    if (field.length > 0) setSource(field.source)
  }
  const unfold = (path: string, isOpen: boolean): void =>
    setOpen((before) => (isOpen ? before.union(new Set([path])) : before.difference(new Set([path]))))
  const bytes = sources[source]?.bytes ?? new Uint8Array()
  const hasMark = chosen !== undefined && chosen.source === source
  return (
    <section class="packet-detail" aria-label={texts.packet(number)}>
      <h2>
        {texts.packet(number)} <span class="mono">{instantText(packet.ns, zone)}</span> {packet.device}
      </h2>
      <p class="controls">
        {streams.map((one) => (
          <button type="button" key={one.protocol} onClick={() => setStream(one)}>
            {texts.follow(one.protocol)}
          </button>
        ))}
        {row?.number === number ? (
          <CopyButton text={() => row.columns.join('\t')} label={texts.copySummary} />
        ) : null}
        <CopyButton text={() => fieldLines(fields).join('\n')} label={texts.copyFields} />
        <CopyButton text={() => hexText(bytes)} label={texts.copyBytes} />
        <span class="quiet">
          {texts.time} <Value text={String(packet.ns)} />
        </span>
      </p>
      <PivotLinks packet={packet} />
      {packet.bytes.length === packet.length ? null : (
        <p class="quiet">
          {countText(packet.bytes.length)} {TEXTS.inside.cut} {countText(packet.length)}.
        </p>
      )}
      <div class="fields-and-bytes">
        <FieldTree fields={fields} open={open} onToggle={unfold} chosen={chosen} onChoose={choose} />
        <div class="bytes-of-packet">
          {sources.length < 2 ? null : (
            <div class="chips">
              {sources.map(({ name }, index) => (
                <button
                  type="button"
                  key={index}
                  aria-pressed={index === source}
                  onClick={() => setSource(index)}
                >
                  {name}
                </button>
              ))}
            </div>
          )}
          <ByteLines
            bytes={bytes}
            start={hasMark ? chosen.start : 0}
            end={hasMark ? chosen.start + chosen.length : 0}
            onByte={(at) => {
              const found = fieldAt(fields, { source, at })
              if (found === undefined) return
              setOpen((before) => before.union(new Set(found.open)))
              setChosen(found.field)
            }}
          />
        </div>
      </div>
      {chosen === undefined ? null : <FieldActions field={chosen} onFilter={onFilter} onPacket={onPacket} />}
      {stream === undefined ? null : (
        <StreamDialog
          dissector={dissector}
          stream={stream}
          onFilter={() => {
            setStream(undefined)
            onFilter(stream.filter)
          }}
          onClose={() => setStream(undefined)}
        />
      )}
    </section>
  )
}

interface FieldActionsProps extends Pick<PacketDetailProps, 'onFilter' | 'onPacket'> {
  readonly field: TreeField
}

function FieldActions({ field: { label, filter, packet }, onFilter, onPacket }: FieldActionsProps) {
  const { dissection: texts } = TEXTS
  return (
    <div class="controls">
      {filter === '' ? null : (
        <>
          <button type="button" onClick={() => onFilter(filter)}>
            {texts.asFilter}
          </button>
          <CopyButton text={() => filter} label={texts.copyFilter} />
        </>
      )}
      <CopyButton text={() => label} label={texts.copyField} />
      {packet === undefined ? null : (
        <button type="button" onClick={() => onPacket(packet)}>
          {texts.toPacket(packet)}
        </button>
      )}
    </div>
  )
}

/** All fields with their indentation, as Wireshark prints them. */
function fieldLines(fields: readonly TreeField[], level = 0): readonly string[] {
  return fields.flatMap(({ label, fields: inner }) => [
    `${'    '.repeat(level)}${label}`,
    ...fieldLines(inner, level + 1),
  ])
}

function hexText(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
