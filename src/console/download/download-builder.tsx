/** The selection as a download: every parameter of the API, an estimate, and the ways to get it. */
import { Fragment } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Parameter } from '../../shared/query/query-parameters.ts'
import { isDayWord } from '../../shared/query/time/query-time.ts'
import { answered, gateway, Problem, type Schemas } from '../base/ask-gateway.ts'
import { type Asked, useAction, useAsked } from '../base/asked.ts'
import { instantOfTyped, instantText } from '../base/instants.ts'
import {
  changed,
  currentState,
  formatPageState,
  isNanoseconds,
  showState,
  typedEnd,
  usePageState,
} from '../base/page-url.ts'
import { may } from '../base/session.ts'
import { useSurroundings } from '../parts/context.ts'
import { CopyButton } from '../parts/copied.tsx'
import { Hint } from '../parts/hint.tsx'
import { Failure } from '../parts/notice.tsx'
import { TEXTS } from '../texts.ts'
import { readSelection } from '../timeline/selection.ts'
import { viewOfSelection } from '../timeline/shown-view.ts'
import { capfleetLine, curlLine, downloadPath, downloadUrl } from './command-lines.ts'
import { EstimateView } from './estimate-view.tsx'
import { MissingDevices } from './missing-devices.tsx'
import { FieldProblem, ParameterField } from './parameter-field.tsx'
import {
  downloadPairs,
  exportPairs,
  GROUPS,
  type GroupName,
  type Pairs,
  queryOf,
  queryText,
} from './parameter-groups.ts'
import { QueuePlaces } from './queue-places.tsx'
import { Receipts } from './receipts.tsx'
import { ScheduleTimes, useDueTimes } from './schedule-times.tsx'
import { startDownload } from './start-download.ts'

/** A filter is checked when the user stops typing. */
const TYPED_MS = 250

const DOWNLOAD_GROUPS: readonly GroupName[] = ['filters', 'limits', 'times', 'merge', 'file', 'more']

const OPEN_GROUPS: ReadonlySet<GroupName> = new Set<GroupName>(['filters'])

export function DownloadBuilder() {
  const { values } = usePageState()
  const { session } = useSurroundings()
  const [started, setStarted] = useState(0)
  const onStart = (): void => setStarted((count) => count + 1)
  const pairs = downloadPairs(values)
  const hasRange = values.TSBegin !== undefined && values.TSEnd !== undefined
  const estimate = useAsked(
    async (signal): Promise<Schemas['FleetEstimate']> =>
      await answered(
        gateway.GET('/v1/estimate', { params: { query: queryOf<'get_v1_estimate'>(pairs) }, signal }),
      ),
    { key: hasRange ? queryText(pairs) : undefined, delayMs: TYPED_MS },
  )
  const due = useDueTimes(values)
  const problems = [estimate.failure, due.failure].filter((failure) => failure instanceof Problem)
  const [problem] = problems
  const exportGroups: readonly GroupName[] =
    session.exports && may(session, 'export:create') ? ['export', 'schedule'] : []
  return (
    <aside class="builder" aria-label={TEXTS.download.title}>
      <h2>{TEXTS.download.title}</h2>
      <RangeFields values={values} problem={problem} />
      <EstimateView
        estimate={estimate}
        hasRange={hasRange}
        isFiltered={hasFilter(values)}
        query={queryText(pairs)}
      />
      <Buttons
        values={values}
        isReady={hasRange && estimate.value !== undefined && estimate.failure === undefined}
        isDue={due.failure === undefined && !due.isAsking}
        devices={estimate.value?.devices ?? []}
        onStart={onStart}
      />
      {[...DOWNLOAD_GROUPS, ...exportGroups].map((name) => (
        <Group key={name} name={name} values={values} problems={problems} due={due} />
      ))}
      {may(session, 'queue:read') ? (
        <QueuePlaces user={session.user} devices={estimate.value?.devices.map(({ device }) => device)} />
      ) : null}
      <Receipts started={started} onStart={onStart} />
    </aside>
  )
}

type Values = Readonly<Record<string, string>>

function hasFilter(values: Values): boolean {
  return (GROUPS.get('filters') ?? []).some(({ name }) => (values[name] ?? '') !== '')
}

interface GroupProps {
  readonly name: GroupName
  readonly values: Values
  readonly problems: readonly Problem[]
  /** The next runs of the schedule that is being typed. */
  readonly due: Asked<readonly bigint[]>
}

function Group(props: GroupProps) {
  const rows = GROUPS.get(props.name)
  if (rows === undefined) return null
  return <ShownGroup {...props} rows={rows} />
}

/** Opens automatically if it contains given values or errors, and is only closed by the user. */
function ShownGroup({
  name,
  rows,
  values,
  problems,
  due,
}: GroupProps & { readonly rows: readonly Parameter[] }) {
  const given = rows.filter((row) => (values[row.name] ?? '') !== '').length
  const isWanted = given > 0 || rows.some((row) => problems.some(({ param }) => param === row.name))
  const [isOpen, setOpen] = useState(OPEN_GROUPS.has(name) || isWanted)
  useEffect(() => {
    if (isWanted) setOpen(true)
  }, [isWanted])
  return (
    <details class="group" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {TEXTS.download.groups[name]} {given === 0 ? null : <span class="count">{given}</span>}
      </summary>
      {rows.map((row) => (
        <Fragment key={row.name}>
          <ParameterField
            parameter={row}
            value={values[row.name] ?? ''}
            problem={problems.find(({ param }) => param === row.name)}
            onChange={(value) =>
              showState(changed(currentState(), { [row.name]: value === '' ? undefined : value }))
            }
          />
          {row.name === 'Cron' ? <ScheduleTimes due={due} /> : null}
        </Fragment>
      ))}
    </details>
  )
}

interface RangeFieldsProps {
  readonly values: Values
  readonly problem: Problem | undefined
}

function RangeFields({ values, problem }: RangeFieldsProps) {
  const { download: texts } = TEXTS
  return (
    <div class="range">
      <TimeField name="TSBegin" label={texts.begin} values={values} problem={problem} />
      <TimeField name="TSEnd" label={texts.end} values={values} problem={problem} />
      <div class="field">
        <label for="parameter-Device">{texts.devices}</label>
        <input
          id="parameter-Device"
          class="mono"
          value={values.Device ?? ''}
          placeholder={texts.allDevices}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) =>
            showState(changed(currentState(), { Device: event.currentTarget.value || undefined }))
          }
        />
        {problem?.param === 'Device' || problem?.code === 'unknown-device' ? (
          <FieldProblem id="device-problem" value={values.Device ?? ''} problem={problem} />
        ) : null}
      </div>
    </div>
  )
}

interface TimeFieldProps extends RangeFieldsProps {
  readonly name: 'TSBegin' | 'TSEnd'
  readonly label: string
}

/** Shows the exact instant in the page's zone; accepts what the API accepts, local times being in that zone. */
function TimeField({ name, label, values, problem }: TimeFieldProps) {
  const { zone } = useSurroundings()
  // Incomplete input must survive re-rendering.
  const [typed, setTyped] = useState<string | undefined>()
  const value = values[name] ?? ''
  const shown = isNanoseconds(value) ? instantText(BigInt(value), zone) : value
  const [mistake, setMistake] = useState<Problem | undefined>()
  const isOwn = problem?.param === name || (problem?.param === 'TSZone' && name === 'TSBegin')
  const own = mistake ?? (isOwn ? problem : undefined)
  return (
    <div class="field">
      <label for={`parameter-${name}`}>{label}</label>
      <input
        id={`parameter-${name}`}
        class="mono"
        value={typed ?? shown}
        placeholder={TEXTS.example(name === 'TSBegin' ? '-15m' : 'now')}
        aria-invalid={own !== undefined}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => setTyped(event.currentTarget.value)}
        onBlur={() => setTyped(undefined)}
        onChange={(event) => {
          setTyped(undefined)
          const given = event.currentTarget.value
          const mistaken = mistakenNumber(name, given, zone)
          setMistake(mistaken)
          if (mistaken !== undefined) return
          const state = currentState()
          const next = changed(state, typedEnd(state.values, name, given, zone))
          showState(changed(next, viewOfSelection(next.values)), { isStep: true })
        }}
      />
      {isDayWord(value) && values.TSZone !== undefined ? (
        <p class="quiet">{TEXTS.download.dayIn(values.TSZone)}</p>
      ) : null}
      {name === 'TSBegin' ? <Hint about={TEXTS.download.times} text={TEXTS.download.timeHint} /> : null}
      <FieldProblem id={`parameter-${name}-problem`} value={value} problem={own} />
    </div>
  )
}

/** A typed number that is no epoch time must not become nanoseconds, which all numbers in the page's address are. */
function mistakenNumber(name: string, text: string, zone: string): Problem | undefined {
  if (!isNanoseconds(text.trim())) return undefined
  try {
    instantOfTyped(name, text.trim(), zone)
    return undefined
  } catch (error) {
    return new Problem({ code: 'bad-parameter', status: 400, detail: (error as Error).message, param: name })
  }
}

interface ButtonsProps {
  readonly values: Values
  readonly isReady: boolean
  /** Whether the typed schedule would run; also if none is typed. */
  readonly isDue: boolean
  readonly devices: Schemas['FleetEstimate']['devices']
  readonly onStart: () => void
}

function Buttons({ values, isReady, isDue, devices, onStart }: ButtonsProps) {
  const { download: texts } = TEXTS
  const { session } = useSurroundings()
  const pairs = downloadPairs(values)
  const download = useAction()
  const query = queryText(pairs)
  const [started, setStarted] = useState(query)
  const [isStarted, setIsStarted] = useState(false)
  // It does not apply once the selection has changed.
  const failure = started === query ? download.failure : undefined
  const start = async (): Promise<void> => {
    setStarted(query)
    setIsStarted(false)
    await startDownload(downloadPath(absolute(values, pairs)))
    setIsStarted(true)
    onStart()
  }
  return (
    <>
      <div class="actions main">
        <button
          type="button"
          class="primary"
          disabled={!isReady || download.isBusy}
          onClick={() => download.run(start)}
        >
          {download.isBusy ? texts.preparing : texts.button}
        </button>
        {session.exports && may(session, 'export:create') ? (
          <OrderButtons values={values} isReady={isReady && isDue} />
        ) : null}
        {isReady ? (
          <a class="button" href={formatPageState({ view: 'inside', values })}>
            {texts.inside}
          </a>
        ) : null}
      </div>
      <Failure failure={failure} />
      {isStarted && started === query ? (
        <p class="good" role="status">
          {texts.started}
        </p>
      ) : null}
      {failure instanceof Problem && devices.every((device) => !('error' in device)) ? (
        <MissingDevices missing={failure.devices} devices={devices} />
      ) : null}
      {values.TSBegin === undefined || values.TSEnd === undefined ? null : <Copies pairs={pairs} />}
    </>
  )
}

/** Other ways to run the same download. */
function Copies({ pairs }: { readonly pairs: Pairs }) {
  const { download: texts } = TEXTS
  const { session } = useSurroundings()
  return (
    <div class="actions copies">
      <CopyButton text={() => curlLine(pairs, session)} label={texts.copyCurl} />
      <CopyButton text={() => capfleetLine(pairs)} label={texts.copyCapfleet} />
      <CopyButton text={() => downloadUrl(pairs)} label={texts.copyUrl} />
      <CopyButton text={() => location.href} label={texts.copyLink} />
    </div>
  )
}

/** Resolves relative times when the button is pressed, which a ticket and a receipt require. */
function absolute(values: Values, pairs: Pairs): Pairs {
  const selection = readSelection(values)
  if (selection === undefined || values.Follow !== undefined) return pairs
  const ends: Readonly<Record<string, bigint>> = { TSBegin: selection.fromNs, TSEnd: selection.toNs }
  return pairs.map(([name, value]) => [name, String(ends[name] ?? value)] as const)
}

function OrderButtons({ values, isReady }: Pick<ButtonsProps, 'values' | 'isReady'>) {
  const { download: texts } = TEXTS
  const [ordered, setOrdered] = useState<{ readonly id: string; readonly isSchedule: boolean } | undefined>()
  const { isBusy, failure, run } = useAction()
  const isSchedule = (values.Cron ?? '') !== ''
  const order = async (): Promise<void> => {
    const given = exportPairs(values, isSchedule)
    const asked = isSchedule
      ? gateway.POST('/v1/schedules', { params: { query: queryOf<'post_v1_schedules'>(given) } })
      : gateway.POST('/v1/exports', { params: { query: queryOf<'post_v1_exports'>(given) } })
    setOrdered({ id: (await answered<{ readonly id: string }>(asked)).id, isSchedule })
  }
  return (
    <>
      <button type="button" disabled={!isReady || isBusy} onClick={() => run(order)}>
        {isBusy ? texts.ordering : isSchedule ? texts.schedule : texts.export}
      </button>
      {ordered === undefined ? null : (
        <a
          class="button"
          href={formatPageState({ view: 'exports', values: { ...values, export: ordered.id } })}
        >
          {ordered.isSchedule ? texts.scheduled : texts.ordered}
        </a>
      )}
      <Failure failure={failure} />
    </>
  )
}
