/** Everything known about one device, next to the list. */
import { useEffect, useRef } from 'preact/hooks'
import { bitRateText, countText } from '../../shared/base/amounts.ts'
import { useAsked } from '../base/asked.ts'
import type { DeviceReport } from '../base/devices.ts'
import { durationText, instantOfIso, instantText, nowNs } from '../base/instants.ts'
import { changed, currentState, formatPageState, showState } from '../base/page-url.ts'
import { may } from '../base/session.ts'
import { useSurroundings } from '../parts/context.ts'
import { CopyBeside, Value } from '../parts/copied.tsx'
import { TEXTS } from '../texts.ts'
import { askNewestPacket } from '../timeline/captures.ts'
import { UploadButton } from '../upload/upload-button.tsx'
import type { ControlRequest } from './capture-control.tsx'
import { freeText, Health, keptText, lacksText } from './device-row.tsx'

const NEWEST_EVERY_MS = 5_000

interface DeviceDetailsProps {
  readonly device: DeviceReport
  readonly onControl: (request: ControlRequest) => void
}

export function DeviceDetails({ device, onControl }: DeviceDetailsProps) {
  const { session, zone } = useSurroundings()
  const { name } = device
  const newest = useAsked((signal) => askNewestPacket(name, signal), {
    key: name,
    everyMs: NEWEST_EVERY_MS,
  })
  const element = useRef<HTMLElement>(null)
  // Opening it by keyboard moves the focus into it; a click leaves the focus in the list.
  useEffect(() => {
    // On a phone it is above the list.
    element.current?.scrollIntoView({ block: 'nearest' })
    if (document.activeElement?.matches('.fleet-table a:focus-visible')) element.current?.focus()
  }, [name])
  const close = (): void => {
    showState(changed(currentState(), { device: undefined }))
    document.querySelector<HTMLElement>(`tr[data-device="${CSS.escape(name)}"] a`)?.focus()
  }
  const timeline = formatPageState({
    view: 'timeline',
    values: { ...currentState().values, lanes: 'selected', Device: name },
  })
  return (
    <aside class="details" ref={element} tabIndex={-1} aria-label={name}>
      <div class="actions">
        <h2>
          {name} <CopyBeside text={name} />
        </h2>
        <button type="button" onClick={close}>
          {TEXTS.close}
        </button>
      </div>
      <p>
        <Health device={device} />{' '}
        {device.error === null ? null : <span class="bad">{device.error.detail}</span>}
      </p>
      <div class="actions">
        <a class="button" href={timeline}>
          {TEXTS.fleet.timeline}
        </a>
        {may(session, 'capture:control') ? (
          <>
            <button type="button" onClick={() => onControl({ action: 'start', devices: [name] })}>
              {TEXTS.fleet.start}
            </button>
            <button type="button" onClick={() => onControl({ action: 'stop', devices: [name] })}>
              {TEXTS.fleet.stop}
            </button>
          </>
        ) : null}
        {device.kind === 'capfleet' ? <UploadButton device={name} /> : null}
      </div>
      <dl>
        {factsOf(device, zone, newest.value).map(([term, text, shown]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>
              <Value text={text} shown={shown ?? text} />
            </dd>
          </div>
        ))}
      </dl>
    </aside>
  )
}

function factsOf(
  device: DeviceReport,
  zone: string,
  newestNs: bigint | undefined,
): readonly (readonly [term: string, text: string, shown?: string | undefined])[] {
  const { fleet: texts } = TEXTS
  const { facts } = texts
  const time = (iso: string | null) => (iso === null ? '' : instantText(instantOfIso(iso), zone, 3))
  const span = (ns: string | null) => (ns === null ? undefined : durationText(BigInt(ns)))
  const amount = (value: number | null | undefined, shown: (value: number) => string) =>
    value === null || value === undefined ? ([''] as const) : ([String(value), shown(value)] as const)
  return [
    [facts.site, device.site ?? ''],
    [facts.address, device.url],
    [facts.version, device.version ?? ''],
    [facts.kind, device.kind ?? '', device.kind === null ? undefined : texts.kinds[device.kind]],
    [facts.lacks, lacksText(device) ?? '', device.lacks.map(({ path }) => path).join(', ')],
    [facts.since, time(device.since)],
    [facts.asked, time(device.probedAt)],
    [facts.took, device.probeMs === null ? '' : `${device.probeMs.toFixed(1)} ms`],
    [facts.capture, device.capture?.name ?? device.capture?.state ?? ''],
    [facts.rate, ...amount(device.capture?.gbps, (gbps) => bitRateText(gbps * 1_000_000_000))],
    [facts.drops, ...amount(device.capture?.drops, countText)],
    [facts.free, ...amount(device.storeFreeBytes, () => freeText(device))],
    [facts.breaker, device.breaker],
    [facts.offset, device.clockOffsetNs ?? '', span(device.clockOffsetNs)],
    [facts.error, device.clockErrorNs ?? '', span(device.clockErrorNs)],
    [facts.ptp, device.ptp === null ? '' : device.ptp.sync ? texts.inStep : texts.notInStep],
    [
      facts.oldest,
      device.oldestPacketNs ?? '',
      device.oldestPacketNs === null ? undefined : instantText(BigInt(device.oldestPacketNs), zone),
    ],
    [facts.newest, ...newestText(newestNs, zone)],
    [facts.kept, keptText(device) === TEXTS.none ? '' : keptText(device)],
    [facts.streams, texts.usedOf(device.slotsUsed, device.slotsLimit ?? device.slotsTotal)],
    [facts.readers, String(device.readers ?? '')],
    [facts.waiting, String(device.waiting ?? '')],
  ]
}

/** With its age, which shows whether packets still arrive. */
function newestText(ns: bigint | undefined, zone: string): readonly [text: string, shown?: string] {
  if (ns === undefined) return ['']
  const ageNs = nowNs() - ns
  const age = ageNs < 0n ? '' : ` (${TEXTS.fleet.ago(durationText(ageNs))})`
  return [String(ns), `${instantText(ns, zone, 3)}${age}`]
}
