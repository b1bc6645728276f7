# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
# The exception that longjmp throws; C has no way to define one.
	.globl	__c_longjmp
	.tagtype	__c_longjmp i32
__c_longjmp:
