cudaMemcpyToSymbol(table, host, 4 * n);                    //-> hipMemcpyToSymbol(HIP_SYMBOL(table), host, 4 * n);
cudaMemcpyToSymbol(tables[2], host, sizeof(x), 0, cudaMemcpyHostToDevice);  //-> hipMemcpyToSymbol(HIP_SYMBOL(tables[2]), host, sizeof(x), 0, hipMemcpyHostToDevice);
cudaMemcpyFromSymbol(host, f<a, b>(x), 4);                 //-> hipMemcpyFromSymbol(host, HIP_SYMBOL(f<a, b>(x)), 4);
cudaGetSymbolAddress((void **)&address, table);            //-> hipGetSymbolAddress((void **)&address, HIP_SYMBOL(table));
#define COPY(s) cudaMemcpyToSymbol(s, host, 4)             //-> #define COPY(s) hipMemcpyToSymbol(HIP_SYMBOL(s), host, 4)
cudaMemcpyToSymbol("table", host, 4);                      //-> hipMemcpyToSymbol("table", host, 4);
hipMemcpyToSymbol(HIP_SYMBOL(table), host, 4);
myMemcpyToSymbol(table, host, 4);
cudaMemcpy(table, host, 4, k);                             //-> hipMemcpy(table, host, 4, k);
