/** The bytes of a conversation as text, as `tshark -z follow` prints them. */
import { useEffect, useState } from 'preact/hooks'
import type { FollowableStream, FollowedStream } from '../../dissector/messages.ts'
import { countText } from '../../shared/base/amounts.ts'
import { CopyButton } from '../parts/copied.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Waiting } from '../parts/notice.tsx'
import { TEXTS } from '../texts.ts'
import type { Dissector } from './dissector.ts'
import { streamText } from './stream-text.ts'

/** More text makes the browser slow; the rest is in the capture file. */
const SHOWN_CHARACTERS = 1_000_000

interface StreamDialogProps {
  readonly dissector: Dissector
  readonly stream: FollowableStream
  /** Shows only the packets of the stream. */
  readonly onFilter: () => void
  readonly onClose: () => void
}

export function StreamDialog({ dissector, stream, onFilter, onClose }: StreamDialogProps) {
  const { dissection: texts } = TEXTS
  const [followed, setFollowed] = useState<FollowedStream | undefined>()
  const [failure, setFailure] = useState<unknown>()
  useEffect(() => {
    dissector.ask('follow', stream).then(setFollowed, setFailure)
  }, [])
  return (
    <Dialog
      title={texts.stream(stream.protocol)}
      action={texts.onlyStream}
      isBusy={false}
      failure={failure}
      onAnswer={onFilter}
      onClose={onClose}
    >
      {followed === undefined ? <Waiting /> : <Followed followed={followed} />}
    </Dialog>
  )
}

function Followed({ followed }: { readonly followed: FollowedStream }) {
  const { dissection: texts } = TEXTS
  const { client, server, pieces } = followed
  let left = SHOWN_CHARACTERS
  const shown = pieces.map((piece) => {
    const text = streamText(piece.bytes.subarray(0, left))
    left -= text.length
    return { ...piece, text }
  })
  return (
    <>
      <p>
        <span class="from-client">{client}</span> → <span class="from-server">{server}</span>
      </p>
      {left > 0 ? null : <p class="warning">{texts.streamCut(countText(SHOWN_CHARACTERS))}</p>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys */}
      <section class="followed" tabIndex={0} aria-label={texts.streamBytes}>
        <pre>
          {shown.map(({ text, isFromServer }, index) => (
            <span key={index} class={isFromServer ? 'from-server' : 'from-client'}>
              {text}
            </span>
          ))}
        </pre>
      </section>
      <CopyButton
        text={() => pieces.map(({ bytes }) => streamText(bytes)).join('')}
        label={texts.copyStream}
      />
    </>
  )
}
