/** Finds the devices that saw the conversation of an alert, and selects them, so that no stream of the others is taken. */
import { useEffect, useState } from 'preact/hooks'
import { DevicesThatSaw } from '../../shared/contract/devices-that-saw.ts'
import { changed, currentState, showState, usePageState } from '../base/page-url.ts'
import { SAW } from '../download/pivot-link.ts'
import { useSurroundings } from '../parts/context.ts'
import { TEXTS } from '../texts.ts'
import { readSelection } from './selection.ts'
import { askSeenLines } from './sightings.ts'

export function AlertDevices() {
  const { values } = usePageState()
  const { session } = useSurroundings()
  const { alert: texts } = TEXTS.timeline
  const [outcome, setOutcome] = useState('')
  const { [SAW]: hosts = '', TSBegin = '', TSEnd = '', Device = '' } = values
  // Callers with a filter may only count packets, which takes streams.
  const isSearched = hosts !== '' && Device === '' && session.bounds.filters.length === 0
  useEffect(() => {
    if (hosts === '') return
    const leaving = new AbortController()
    const settle = (names: readonly string[], text: string): void => {
      if (leaving.signal.aborted) return
      setOutcome(text)
      const devices = names.length === 0 ? {} : { Device: names.join(',') }
      showState(changed(currentState(), { ...devices, [SAW]: undefined }))
    }
    if (!isSearched) {
      settle([], Device === '' ? texts.unknown : '')
      return
    }
    setOutcome('')
    devicesThatSaw(hosts.split(','), { TSBegin, TSEnd }, leaving.signal).then(
      (names) => settle(names, names.length === 0 ? texts.nowhere : texts.chosen(names.length)),
      () => settle([], texts.unknown),
    )
    return () => leaving.abort()
  }, [hosts, TSBegin, TSEnd, isSearched])
  // What was said refers to the selection of the alert.
  useEffect(() => {
    if (Device === '') return
    return () => setOutcome('')
  }, [Device])
  const text = hosts === '' ? outcome : texts.asking
  return text === '' ? null : (
    <p class="quiet alert-devices" role="status">
      {text}
    </p>
  )
}

async function devicesThatSaw(
  hosts: readonly string[],
  range: { readonly TSBegin: string; readonly TSEnd: string },
  signal: AbortSignal,
): Promise<readonly string[]> {
  const selection = readSelection(range)
  if (selection === undefined) throw new RangeError('the range is not valid')
  const saw = new DevicesThatSaw(hosts)
  for await (const line of askSeenLines(
    { addresses: hosts.join(','), ...selection, isFiltered: false },
    signal,
  ))
    saw.take(line)
  return saw.names
}
