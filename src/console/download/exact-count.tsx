/** Counts what the download would deliver where the estimate is only a limit: by reading its packets, on demand. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { bytesText, countText, packetsText, percentText } from '../../shared/base/amounts.ts'
import { Failure } from '../parts/notice.tsx'
import { TEXTS } from '../texts.ts'
import { askCount, type CountProgress, countedSoFar, NOTHING_COUNTED } from './count-progress.ts'

/** Must have `query` as its key: the count of another query means nothing. */
export function ExactCount({ query }: { readonly query: string }) {
  const { count: texts } = TEXTS.download
  const [progress, setProgress] = useState<CountProgress | undefined>()
  const [failure, setFailure] = useState<unknown>()
  const running = useRef<AbortController | undefined>(undefined)
  useEffect(() => () => running.current?.abort(), [])
  const stop = (): void => {
    running.current?.abort()
    running.current = undefined
    setProgress(undefined)
  }
  const start = (): void => {
    stop()
    const leaving = new AbortController()
    const { signal } = leaving
    running.current = leaving
    setFailure(undefined)
    setProgress(NOTHING_COUNTED)
    askCount(query, signal, (next) => {
      if (!signal.aborted) setProgress(next)
    }).catch((error: unknown) => {
      if (signal.aborted) return
      stop()
      setFailure(error)
    })
  }
  if (progress === undefined)
    return (
      <>
        <p>
          <button type="button" class="plain" title={texts.hint} onClick={start}>
            {texts.button}
          </button>
        </p>
        <Failure failure={failure} />
      </>
    )
  return (
    <p>
      {progress.end === undefined ? (
        <Running progress={progress} onStop={stop} />
      ) : (
        <Ended progress={progress} />
      )}
    </p>
  )
}

function Running({ progress, onStop }: { readonly progress: CountProgress; readonly onStop: () => void }) {
  const { count: texts } = TEXTS.download
  const { packets, share } = countedSoFar(progress)
  return (
    <>
      <span>{texts.soFar(countText(packets), share === undefined ? undefined : percentText(share))}</span>
      <button type="button" class="plain" onClick={onStop}>
        {texts.stop}
      </button>
    </>
  )
}

function Ended({ progress }: { readonly progress: CountProgress }) {
  const { download: texts } = TEXTS
  const { end, failures } = progress
  if (end === undefined) return null
  const { packets, bytes, exact, complete, partial } = end
  const { share } = countedSoFar(progress)
  return (
    <span role="status">
      <span class="quiet">
        {complete ? texts.count.counted : texts.count.countedSoFar}{' '}
        {exact ? texts.exactly : complete ? texts.atMost : ''}
      </span>{' '}
      <strong data-counted={packets}>{packetsText(packets)}</strong>{' '}
      <strong title={`${countText(bytes)} B`}>{bytesText(bytes)}</strong>
      {partial.length === 0 ? null : (
        <span class="warning">
          {' '}
          {texts.count.partial(share === undefined ? undefined : percentText(share))}
        </span>
      )}
      {[...failures].map(([device, detail]) => (
        <span key={device} class="warning">
          {' '}
          {texts.count.uncounted(device, detail)}
        </span>
      ))}
    </span>
  )
}
