/** The files of exports, and their manifest. */
import { CapfleetError } from '../../../shared/base/error.ts'
import { takeNoParameters, takeParameters } from '../../../shared/contract/request-parameters.ts'
import { EXPORT_FILE_PARAMETERS } from '../../../shared/query/download/export-options.ts'
import { badParameter } from '../../../shared/query/query-parameters.ts'
import { orderFacts } from '../../export/export-order.ts'
import { type ExportRecord, keptCount } from '../../export/export-record.ts'
import { MANIFEST_NAME, targetOf } from '../../export/order-target.ts'
import type { ExportTarget } from '../../export/target/export-target.ts'
import { actorOf } from '../request/audited.ts'
import { refuseWhileDraining } from '../request/refuse-request.ts'
import type { RouteContext } from '../request/route-context.ts'
import { answerFile } from './answer-file.ts'
import { ownExport } from './export-handlers.ts'
import type { ExportsParts } from './exports-parts.ts'
import { FileAudit } from './file-audit.ts'

/** A file, or a part of it. */
export async function sendExportFile(ctx: RouteContext, parts: ExportsParts): Promise<void> {
  refuseWhileDraining(parts)
  const { part } = takeParameters(ctx, EXPORT_FILE_PARAMETERS)
  const record = await ownExport(ctx, parts, ctx.params.id ?? '')
  const target = targetWithFiles(parts, record)
  const [file] = await parts.exports.store.keptFiles(record, part - 1, part)
  if (file === undefined)
    throw badParameter('Part', `must be one of the ${keptCount(record)} files, got ${part}`)
  const { name, bytes, sha256 } = file
  const open = (range: Parameters<ExportTarget['open']>[1]) =>
    target.open({ exportId: record.order.id, name }, range)
  const sent = { export: record.order.id, file: name, ...orderFacts(record.order) }
  const audit = new FileAudit(parts.audit, actorOf(ctx), sent)
  const cutting = new AbortController()
  const { running, metrics, clientIdleTimeoutMs } = parts.downloads
  running.add(cutting)
  try {
    const options = { clientIdleTimeoutMs, log: parts.log, metrics, audit, cut: cutting.signal }
    await answerFile(ctx, { name, bytes: Number(bytes), sha256, open }, options)
  } finally {
    running.delete(cutting)
  }
}

/** Describes what is in the files. */
export async function showManifest(ctx: RouteContext, parts: ExportsParts): Promise<void> {
  takeNoParameters(ctx)
  const record = await ownExport(ctx, parts, ctx.params.id ?? '')
  const target = targetWithFiles(parts, record)
  ctx.set('Cache-Control', 'no-store')
  ctx.type = 'application/json'
  ctx.body = await target.open({ exportId: record.order.id, name: MANIFEST_NAME })
}

/** The target that has the files. Fails with export-unfinished if there are none. */
function targetWithFiles({ exports }: ExportsParts, record: ExportRecord): ExportTarget {
  if (keptCount(record) > 0) return targetOf(exports, record.order)
  const { order, state, error } = record
  const why = error === undefined ? '' : ` (${error.detail})`
  throw new CapfleetError('export-unfinished', `export ${order.id} has no file: it is ${state}${why}`)
}
