/** All rows, in the order in which they are walked. */
import type { Claim } from './claim.ts'
import { ACTIVITY_CLAIMS } from './claims/activity-claims.ts'
import { AMENDED_VALUE_CLAIMS } from './claims/amended-value-claims.ts'
import { AMENDMENT_CLAIMS } from './claims/amendment-claims.ts'
import { AUTHENTICATION_CLAIMS } from './claims/authentication-claims.ts'
import { BODY_CLAIMS } from './claims/body-claims.ts'
import { COMPATIBILITY_CLAIMS } from './claims/compatibility-claims.ts'
import { DOWNLOAD_CLAIMS } from './claims/download-claims.ts'
import { ENDING_CLAIMS } from './claims/ending-claims.ts'
import { ERROR_CLAIMS } from './claims/error-claims.ts'
import { FURTHER_DOWNLOAD_CLAIMS } from './claims/further-download-claims.ts'
import { GATEWAY_CLAIMS } from './claims/gateway-claims.ts'
import { LEGACY_CLAIMS } from './claims/legacy-claims.ts'
import { LIMIT_CLAIMS } from './claims/limit-claims.ts'
import { LIST_CLAIMS } from './claims/list-claims.ts'
import { MERGE_CLAIMS } from './claims/merge-claims.ts'
import { NAME_CLAIMS } from './claims/name-claims.ts'
import { OPERATION_CLAIMS } from './claims/operation-claims.ts'
import { RULE_CLAIMS } from './claims/rule-claims.ts'
import { SYSTEM_CLAIMS } from './claims/system-claims.ts'
import { VALUE_CLAIMS } from './claims/value-claims.ts'

export const CLAIMS: readonly Claim[] = [
  ...OPERATION_CLAIMS,
  ...SYSTEM_CLAIMS,
  ...DOWNLOAD_CLAIMS,
  ...VALUE_CLAIMS,
  ...LEGACY_CLAIMS,
  ...LIMIT_CLAIMS,
  ...RULE_CLAIMS,
  ...ENDING_CLAIMS,
  ...ERROR_CLAIMS,
  ...BODY_CLAIMS,
  ...LIST_CLAIMS,
  ...NAME_CLAIMS,
  ...FURTHER_DOWNLOAD_CLAIMS,
  ...AUTHENTICATION_CLAIMS,
  ...GATEWAY_CLAIMS,
  ...MERGE_CLAIMS,
  ...COMPATIBILITY_CLAIMS,
  ...AMENDMENT_CLAIMS,
  ...AMENDED_VALUE_CLAIMS,
  ...ACTIVITY_CLAIMS,
]
