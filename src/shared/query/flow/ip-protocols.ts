/** Numbers of IP protocols by the names that alerts have: those of IANA, as Suricata and Zeek write them. */

/** The position of a name is its number; "-" has no name of its own. */
const NAMES = `hopopt icmp igmp ggp ip-in-ip st tcp cbt egp igp bbn-rcc-mon nvp-ii pup argus emcon xnet
chaos udp mux dcn-meas hmp prm xns-idp trunk-1 trunk-2 leaf-1 leaf-2 rdp irtp iso-tp4 netblt mfe-nsp
merit-inp dccp 3pc idpr xtp ddp idpr-cmtp tp++ il ipv6 sdrp ipv6-route ipv6-frag idrp rsvp gre
dsr bna esp ah i-nlsp swipe narp mobile tlsp skip ipv6-icmp ipv6-nonxt ipv6-opts - cftp -
sat-expak kryptolan rvd ippc - sat-mon visa ipcu cpnx cphb wsn pvp br-sat-mon sun-nd wb-mon wb-expak
iso-ip vmtp secure-vmtp vines ttp nsfnet-igp dgp tcf eigrp ospf sprite-rpc larp mtp ax.25 os micp
scc-sp etherip encap - gmtp ifmp pnni pim aris scps qnx a/n ipcomp snp compaq-peer ipx-in-ip
vrrp pgm - l2tp ddx iatp stp srp uti smp sm ptp is-is fire crtp crudp
sscopmce iplt sps pipe sctp fc rsvp-e2e-ignore mobility udplite mpls-in-ip manet hip shim6 wesp rohc ethernet`.split(
  /\s/,
)

const OTHER_NAMES: Readonly<Record<string, number>> = { icmp6: 58, icmpv6: 58, ipencap: 4, ipip: 4 }

const NUMBER_MAX = 255

/** The number of a protocol given by its name, in upper or lower case, or by its number. */
export function ipProtocolNumber(text: string): number | undefined {
  if (/^\d{1,3}$/.test(text)) return Number(text) <= NUMBER_MAX ? Number(text) : undefined
  const name = text.toLowerCase()
  if (name === '-') return undefined
  const at = NAMES.indexOf(name)
  if (at >= 0) return at
  return Object.hasOwn(OTHER_NAMES, name) ? OTHER_NAMES[name] : undefined
}

/** The name of a protocol in lower case, or its number as text if it has no name. */
export function ipProtocolName(number: number): string {
  const name = NAMES[number] ?? '-'
  return name === '-' ? String(number) : name.replace('/', '')
}
