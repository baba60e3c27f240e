cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 50);  //! error kernel-pointer //-> hipFuncSetAttribute(reinterpret_cast<const void*>(kernel), hipFuncAttributePreferredSharedMemoryCarveout, 50);
cudaFuncGetAttributes(&a, kernel<float, 4>);  //! error kernel-pointer //-> hipFuncGetAttributes(&a, reinterpret_cast<const void*>(kernel<float, 4>));
cudaFuncSetCacheConfig((const void*)kernel, cudaFuncCachePreferL1);  //-> hipFuncSetCacheConfig((const void*)kernel, hipFuncCachePreferL1);
cudaFuncGetAttributes(&a, (void*)kernel);  //-> hipFuncGetAttributes(&a, (void*)kernel);
cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, kernel, 256, 0);  //-> hipOccupancyMaxActiveBlocksPerMultiprocessor(&n, kernel, 256, 0);
hipFuncSetCacheConfig(kernel, 0);
