/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The sources include this one by its path; what it offers is guests/common/setjmp.h. */
#include <setjmp.h>
