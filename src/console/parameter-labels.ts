/** The page's words for the parameters of the API. */

/** What users call the parameters of downloads, exports and schedules, by their names in the API. */
export const PARAMETER_LABELS: Readonly<Record<string, string>> = {
  FilterBPF: 'Filter',
  FilterBPFDecap: 'Filter inside tunnels',
  FilterAddresses: 'Addresses',
  FilterFrame: 'Switch or port conditions',
  FilterPort: 'Capture port',
  FilterRE: 'Text in the packets',
  MaxPackets: 'At most',
  MaxBytes: 'Size at most',
  TSMax: 'Time after the first packet',
  Slice: 'Bytes of each packet',
  Strip: 'Remove headers',
  TSMode: 'Clock',
  TSResolution: 'Precision',
  OnError: 'If a device fails',
  Dedup: 'Drop duplicates within',
  DedupBy: 'Duplicates have in common',
  Align: 'Correct the clocks',
  Format: 'File format',
  Compression: 'Compression',
  Wait: 'Wait in the queue',
  Digest: 'Checksum',
  Follow: 'Follow new packets',
  PartTime: 'New file every',
  PartBytes: 'New file after',
  Target: 'Store in',
  OnMissing: 'If packets are missing',
  Reason: 'Reason',
  Cron: 'When',
  CronZone: 'Time zone of When',
  Missed: 'After an outage',
}

/** What users call the other parameters of a query. */
const SELECTION_LABELS: Readonly<Record<string, string>> = {
  Device: 'Devices',
  StreamName: 'Capture',
  TSBegin: 'Begin',
  TSEnd: 'End',
  TSZone: 'Time zone',
  TSUnit: 'Unit of the times',
  Start: 'Begin',
  Stop: 'End',
}

/** What users call a parameter; its own name if it has no label. */
export function labelOf(name: string): string {
  return SELECTION_LABELS[name] ?? PARAMETER_LABELS[name] ?? name
}

/** Parameters whose name is an ordinary word: these stay as they are where no value follows. */
const ORDINARY_WORDS: ReadonlySet<string> = new Set(
  'Device Start Stop Slice Strip Format Align Wait Digest Follow Target Missed'.split(' '),
)

/** A message or description of the API, with the page's words for its parameters: "TSEnd=now" is “End” now. */
export function inPageWords(text: string): string {
  return text.replaceAll(/\b([A-Z]\w+)\b(=?)/g, (word, name: string, equals: string) => {
    const label = labelOf(name)
    if (label === name || (equals === '' && ORDINARY_WORDS.has(name))) return word
    return `“${label}”${equals === '' ? '' : ' '}`
  })
}
